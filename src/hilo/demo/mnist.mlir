// The dense model of XLA's best-known tutorial: 784 -> 10, softmax cross-entropy, Adam. Pixels are 0..255, unscaled.
module @mnist {

  // One training step on 100 images. Gives the loss and the new state: weights, biases, their two moments, step count.
  func.func public @train(
      %images: tensor<100x784xf32>, %labels: tensor<100xi32>,
      %w: tensor<784x10xf32>, %b: tensor<10xf32>,
      %mw: tensor<784x10xf32>, %mb: tensor<10xf32>, %vw: tensor<784x10xf32>, %vb: tensor<10xf32>,
      %step: tensor<f32>)
      -> (tensor<f32>, tensor<784x10xf32>, tensor<10xf32>,
          tensor<784x10xf32>, tensor<10xf32>, tensor<784x10xf32>, tensor<10xf32>, tensor<f32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %one = stablehlo.constant dense<1.0> : tensor<f32>
    %ninf = stablehlo.constant dense<0xFF800000> : tensor<f32>

    // Forward: log-softmax of images . w + b, shifted by each row's maximum.
    %product = stablehlo.dot_general %images, %w, contracting_dims = [1] x [0]
        : (tensor<100x784xf32>, tensor<784x10xf32>) -> tensor<100x10xf32>
    %bias = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<10xf32>) -> tensor<100x10xf32>
    %logits = stablehlo.add %product, %bias : tensor<100x10xf32>
    %top = stablehlo.reduce(%logits init: %ninf) applies stablehlo.maximum across dimensions = [1]
        : (tensor<100x10xf32>, tensor<f32>) -> tensor<100xf32>
    %top_row = stablehlo.broadcast_in_dim %top, dims = [0] : (tensor<100xf32>) -> tensor<100x10xf32>
    %shifted = stablehlo.subtract %logits, %top_row : tensor<100x10xf32>
    %exp = stablehlo.exponential %shifted : tensor<100x10xf32>
    %sum = stablehlo.reduce(%exp init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<100x10xf32>, tensor<f32>) -> tensor<100xf32>
    %log_sum = stablehlo.log %sum : tensor<100xf32>
    %log_sum_row = stablehlo.broadcast_in_dim %log_sum, dims = [0] : (tensor<100xf32>) -> tensor<100x10xf32>
    %log_softmax = stablehlo.subtract %shifted, %log_sum_row : tensor<100x10xf32>

    // Loss: the mean of -log_softmax at the labels.
    %classes = stablehlo.iota dim = 1 : tensor<100x10xi32>
    %labels_row = stablehlo.broadcast_in_dim %labels, dims = [0] : (tensor<100xi32>) -> tensor<100x10xi32>
    %hit = stablehlo.compare EQ, %classes, %labels_row, SIGNED : (tensor<100x10xi32>, tensor<100x10xi32>) -> tensor<100x10xi1>
    %zeros = stablehlo.constant dense<0.0> : tensor<100x10xf32>
    %at_label = stablehlo.select %hit, %log_softmax, %zeros : tensor<100x10xi1>, tensor<100x10xf32>
    %total = stablehlo.reduce(%at_label init: %zero) applies stablehlo.add across dimensions = [0, 1]
        : (tensor<100x10xf32>, tensor<f32>) -> tensor<f32>
    %minus_mean = stablehlo.constant dense<-0.01> : tensor<f32>
    %loss = stablehlo.multiply %total, %minus_mean : tensor<f32>

    // Backward: (softmax - one_hot) / 100 at the logits, then to w and b.
    %sum_row = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<100xf32>) -> tensor<100x10xf32>
    %softmax = stablehlo.divide %exp, %sum_row : tensor<100x10xf32>
    %one_hot = stablehlo.convert %hit : (tensor<100x10xi1>) -> tensor<100x10xf32>
    %error = stablehlo.subtract %softmax, %one_hot : tensor<100x10xf32>
    %mean = stablehlo.constant dense<0.01> : tensor<100x10xf32>
    %dlogits = stablehlo.multiply %error, %mean : tensor<100x10xf32>
    %dw = stablehlo.dot_general %images, %dlogits, contracting_dims = [0] x [0]
        : (tensor<100x784xf32>, tensor<100x10xf32>) -> tensor<784x10xf32>
    %db = stablehlo.reduce(%dlogits init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<100x10xf32>, tensor<f32>) -> tensor<10xf32>

    // Adam: rate 0.001, beta1 0.9, beta2 0.999, epsilon 1e-7.
    %next = stablehlo.add %step, %one : tensor<f32>
    %beta1 = stablehlo.constant dense<0.9> : tensor<f32>
    %beta2 = stablehlo.constant dense<0.999> : tensor<f32>
    %rate = stablehlo.constant dense<0.001> : tensor<f32>
    %p1 = stablehlo.power %beta1, %next : tensor<f32>
    %p2 = stablehlo.power %beta2, %next : tensor<f32>
    %q1 = stablehlo.subtract %one, %p1 : tensor<f32>
    %q2 = stablehlo.subtract %one, %p2 : tensor<f32>
    %root = stablehlo.sqrt %q2 : tensor<f32>
    %scaled = stablehlo.multiply %rate, %root : tensor<f32>
    %alpha = stablehlo.divide %scaled, %q1 : tensor<f32>
    %w1, %mw1, %vw1 = func.call @adam_w(%w, %dw, %mw, %vw, %alpha)
        : (tensor<784x10xf32>, tensor<784x10xf32>, tensor<784x10xf32>, tensor<784x10xf32>, tensor<f32>)
        -> (tensor<784x10xf32>, tensor<784x10xf32>, tensor<784x10xf32>)
    %b1, %mb1, %vb1 = func.call @adam_b(%b, %db, %mb, %vb, %alpha)
        : (tensor<10xf32>, tensor<10xf32>, tensor<10xf32>, tensor<10xf32>, tensor<f32>)
        -> (tensor<10xf32>, tensor<10xf32>, tensor<10xf32>)
    return %loss, %w1, %b1, %mw1, %mb1, %vw1, %vb1, %next
        : tensor<f32>, tensor<784x10xf32>, tensor<10xf32>,
          tensor<784x10xf32>, tensor<10xf32>, tensor<784x10xf32>, tensor<10xf32>, tensor<f32>
  }

  func.func private @adam_w(
      %x: tensor<784x10xf32>, %dx: tensor<784x10xf32>, %m: tensor<784x10xf32>, %v: tensor<784x10xf32>, %alpha: tensor<f32>)
      -> (tensor<784x10xf32>, tensor<784x10xf32>, tensor<784x10xf32>) {
    %c9 = stablehlo.constant dense<0.9> : tensor<784x10xf32>
    %c1 = stablehlo.constant dense<0.1> : tensor<784x10xf32>
    %c999 = stablehlo.constant dense<0.999> : tensor<784x10xf32>
    %c001 = stablehlo.constant dense<0.001> : tensor<784x10xf32>
    %epsilon = stablehlo.constant dense<1.0e-7> : tensor<784x10xf32>
    %0 = stablehlo.multiply %m, %c9 : tensor<784x10xf32>
    %1 = stablehlo.multiply %dx, %c1 : tensor<784x10xf32>
    %m1 = stablehlo.add %0, %1 : tensor<784x10xf32>
    %2 = stablehlo.multiply %v, %c999 : tensor<784x10xf32>
    %3 = stablehlo.multiply %dx, %dx : tensor<784x10xf32>
    %4 = stablehlo.multiply %3, %c001 : tensor<784x10xf32>
    %v1 = stablehlo.add %2, %4 : tensor<784x10xf32>
    %5 = stablehlo.broadcast_in_dim %alpha, dims = [] : (tensor<f32>) -> tensor<784x10xf32>
    %6 = stablehlo.multiply %m1, %5 : tensor<784x10xf32>
    %7 = stablehlo.sqrt %v1 : tensor<784x10xf32>
    %8 = stablehlo.add %7, %epsilon : tensor<784x10xf32>
    %9 = stablehlo.divide %6, %8 : tensor<784x10xf32>
    %x1 = stablehlo.subtract %x, %9 : tensor<784x10xf32>
    return %x1, %m1, %v1 : tensor<784x10xf32>, tensor<784x10xf32>, tensor<784x10xf32>
  }

  func.func private @adam_b(
      %x: tensor<10xf32>, %dx: tensor<10xf32>, %m: tensor<10xf32>, %v: tensor<10xf32>, %alpha: tensor<f32>)
      -> (tensor<10xf32>, tensor<10xf32>, tensor<10xf32>) {
    %c9 = stablehlo.constant dense<0.9> : tensor<10xf32>
    %c1 = stablehlo.constant dense<0.1> : tensor<10xf32>
    %c999 = stablehlo.constant dense<0.999> : tensor<10xf32>
    %c001 = stablehlo.constant dense<0.001> : tensor<10xf32>
    %epsilon = stablehlo.constant dense<1.0e-7> : tensor<10xf32>
    %0 = stablehlo.multiply %m, %c9 : tensor<10xf32>
    %1 = stablehlo.multiply %dx, %c1 : tensor<10xf32>
    %m1 = stablehlo.add %0, %1 : tensor<10xf32>
    %2 = stablehlo.multiply %v, %c999 : tensor<10xf32>
    %3 = stablehlo.multiply %dx, %dx : tensor<10xf32>
    %4 = stablehlo.multiply %3, %c001 : tensor<10xf32>
    %v1 = stablehlo.add %2, %4 : tensor<10xf32>
    %5 = stablehlo.broadcast_in_dim %alpha, dims = [] : (tensor<f32>) -> tensor<10xf32>
    %6 = stablehlo.multiply %m1, %5 : tensor<10xf32>
    %7 = stablehlo.sqrt %v1 : tensor<10xf32>
    %8 = stablehlo.add %7, %epsilon : tensor<10xf32>
    %9 = stablehlo.divide %6, %8 : tensor<10xf32>
    %x1 = stablehlo.subtract %x, %9 : tensor<10xf32>
    return %x1, %m1, %v1 : tensor<10xf32>, tensor<10xf32>, tensor<10xf32>
  }

  // How many of 1000 images the model names rightly.
  func.func public @count_right(
      %images: tensor<1000x784xf32>, %labels: tensor<1000xi32>, %w: tensor<784x10xf32>, %b: tensor<10xf32>) -> tensor<i32> {
    %product = stablehlo.dot_general %images, %w, contracting_dims = [1] x [0]
        : (tensor<1000x784xf32>, tensor<784x10xf32>) -> tensor<1000x10xf32>
    %bias = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<10xf32>) -> tensor<1000x10xf32>
    %logits = stablehlo.add %product, %bias : tensor<1000x10xf32>
    %classes = stablehlo.iota dim = 1 : tensor<1000x10xi32>
    %ninf = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %none = stablehlo.constant dense<0> : tensor<i32>
    %best:2 = stablehlo.reduce(%logits init: %ninf), (%classes init: %none) across dimensions = [1]
        : (tensor<1000x10xf32>, tensor<1000x10xi32>, tensor<f32>, tensor<i32>) -> (tensor<1000xf32>, tensor<1000xi32>)
        reducer(%x: tensor<f32>, %y: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {
      %more = stablehlo.compare GT, %y, %x, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %value = stablehlo.select %more, %y, %x : tensor<i1>, tensor<f32>
      %index = stablehlo.select %more, %j, %i : tensor<i1>, tensor<i32>
      stablehlo.return %value, %index : tensor<f32>, tensor<i32>
    }
    %right = stablehlo.compare EQ, %best#1, %labels, SIGNED : (tensor<1000xi32>, tensor<1000xi32>) -> tensor<1000xi1>
    %ones = stablehlo.convert %right : (tensor<1000xi1>) -> tensor<1000xi32>
    %count = stablehlo.reduce(%ones init: %none) applies stablehlo.add across dimensions = [0]
        : (tensor<1000xi32>, tensor<i32>) -> tensor<i32>
    return %count : tensor<i32>
  }
}
