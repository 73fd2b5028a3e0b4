module @jit_block attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<77x384xf32>, %arg1: tensor<384x1152xf32>, %arg2: tensor<384x384xf32>, %arg3: tensor<384x1536xf32>, %arg4: tensor<1536x384xf32>) -> (tensor<77x384xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<77x384xf32>, tensor<f32>) -> tensor<77xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<77xf32>) -> tensor<77x1xf32>
    %cst_0 = stablehlo.constant dense<3.840000e+02> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<77x1xf32>
    %3 = stablehlo.divide %1, %2 : tensor<77x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<77x1xf32>) -> tensor<77x384xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<77x384xf32>
    %6 = stablehlo.multiply %5, %5 : tensor<77x384xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [1] : (tensor<77x384xf32>, tensor<f32>) -> tensor<77xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0] : (tensor<77xf32>) -> tensor<77x1xf32>
    %cst_2 = stablehlo.constant dense<3.840000e+02> : tensor<f32>
    %9 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<77x1xf32>
    %10 = stablehlo.divide %8, %9 : tensor<77x1xf32>
    %cst_3 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<77x1xf32>
    %12 = stablehlo.add %10, %11 : tensor<77x1xf32>
    %13 = stablehlo.rsqrt %12 : tensor<77x1xf32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [0, 1] : (tensor<77x1xf32>) -> tensor<77x384xf32>
    %15 = stablehlo.multiply %5, %14 : tensor<77x384xf32>
    %16 = stablehlo.dot_general %15, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<77x384xf32>, tensor<384x1152xf32>) -> tensor<77x1152xf32>
    %17 = stablehlo.slice %16 [0:77, 0:384] : (tensor<77x1152xf32>) -> tensor<77x384xf32>
    %18 = stablehlo.slice %16 [0:77, 384:768] : (tensor<77x1152xf32>) -> tensor<77x384xf32>
    %19 = stablehlo.slice %16 [0:77, 768:1152] : (tensor<77x1152xf32>) -> tensor<77x384xf32>
    %20 = stablehlo.reshape %17 : (tensor<77x384xf32>) -> tensor<77x6x64xf32>
    %21 = stablehlo.transpose %20, dims = [1, 0, 2] : (tensor<77x6x64xf32>) -> tensor<6x77x64xf32>
    %22 = stablehlo.reshape %18 : (tensor<77x384xf32>) -> tensor<77x6x64xf32>
    %23 = stablehlo.transpose %22, dims = [1, 0, 2] : (tensor<77x6x64xf32>) -> tensor<6x77x64xf32>
    %24 = stablehlo.reshape %19 : (tensor<77x384xf32>) -> tensor<77x6x64xf32>
    %25 = stablehlo.transpose %24, dims = [1, 0, 2] : (tensor<77x6x64xf32>) -> tensor<6x77x64xf32>
    %26 = stablehlo.transpose %23, dims = [0, 2, 1] : (tensor<6x77x64xf32>) -> tensor<6x64x77xf32>
    %27 = stablehlo.dot_general %21, %26, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<6x77x64xf32>, tensor<6x64x77xf32>) -> tensor<6x77x77xf32>
    %cst_4 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %28 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<6x77x77xf32>
    %29 = stablehlo.divide %27, %28 : tensor<6x77x77xf32>
    %cst_5 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %30 = stablehlo.reduce(%29 init: %cst_5) applies stablehlo.maximum across dimensions = [2] : (tensor<6x77x77xf32>, tensor<f32>) -> tensor<6x77xf32>
    %cst_6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %31 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<6x77xf32>
    %32 = stablehlo.maximum %31, %30 : tensor<6x77xf32>
    %33 = stablehlo.broadcast_in_dim %32, dims = [0, 1] : (tensor<6x77xf32>) -> tensor<6x77x1xf32>
    %34 = stablehlo.broadcast_in_dim %33, dims = [0, 1, 2] : (tensor<6x77x1xf32>) -> tensor<6x77x77xf32>
    %35 = stablehlo.subtract %29, %34 : tensor<6x77x77xf32>
    %36 = stablehlo.exponential %35 : tensor<6x77x77xf32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %37 = stablehlo.reduce(%36 init: %cst_7) applies stablehlo.add across dimensions = [2] : (tensor<6x77x77xf32>, tensor<f32>) -> tensor<6x77xf32>
    %38 = stablehlo.broadcast_in_dim %37, dims = [0, 1] : (tensor<6x77xf32>) -> tensor<6x77x1xf32>
    %39 = stablehlo.broadcast_in_dim %38, dims = [0, 1, 2] : (tensor<6x77x1xf32>) -> tensor<6x77x77xf32>
    %40 = stablehlo.divide %36, %39 : tensor<6x77x77xf32>
    %41 = stablehlo.dot_general %40, %25, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<6x77x77xf32>, tensor<6x77x64xf32>) -> tensor<6x77x64xf32>
    %42 = stablehlo.transpose %41, dims = [1, 0, 2] : (tensor<6x77x64xf32>) -> tensor<77x6x64xf32>
    %43 = stablehlo.reshape %42 : (tensor<77x6x64xf32>) -> tensor<77x384xf32>
    %44 = stablehlo.dot_general %43, %arg2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<77x384xf32>, tensor<384x384xf32>) -> tensor<77x384xf32>
    %45 = stablehlo.add %arg0, %44 : tensor<77x384xf32>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %46 = stablehlo.reduce(%45 init: %cst_8) applies stablehlo.add across dimensions = [1] : (tensor<77x384xf32>, tensor<f32>) -> tensor<77xf32>
    %47 = stablehlo.broadcast_in_dim %46, dims = [0] : (tensor<77xf32>) -> tensor<77x1xf32>
    %cst_9 = stablehlo.constant dense<3.840000e+02> : tensor<f32>
    %48 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<77x1xf32>
    %49 = stablehlo.divide %47, %48 : tensor<77x1xf32>
    %50 = stablehlo.broadcast_in_dim %49, dims = [0, 1] : (tensor<77x1xf32>) -> tensor<77x384xf32>
    %51 = stablehlo.subtract %45, %50 : tensor<77x384xf32>
    %52 = stablehlo.multiply %51, %51 : tensor<77x384xf32>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %53 = stablehlo.reduce(%52 init: %cst_10) applies stablehlo.add across dimensions = [1] : (tensor<77x384xf32>, tensor<f32>) -> tensor<77xf32>
    %54 = stablehlo.broadcast_in_dim %53, dims = [0] : (tensor<77xf32>) -> tensor<77x1xf32>
    %cst_11 = stablehlo.constant dense<3.840000e+02> : tensor<f32>
    %55 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<77x1xf32>
    %56 = stablehlo.divide %54, %55 : tensor<77x1xf32>
    %cst_12 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %57 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<77x1xf32>
    %58 = stablehlo.add %56, %57 : tensor<77x1xf32>
    %59 = stablehlo.rsqrt %58 : tensor<77x1xf32>
    %60 = stablehlo.broadcast_in_dim %59, dims = [0, 1] : (tensor<77x1xf32>) -> tensor<77x384xf32>
    %61 = stablehlo.multiply %51, %60 : tensor<77x384xf32>
    %62 = stablehlo.dot_general %61, %arg3, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<77x384xf32>, tensor<384x1536xf32>) -> tensor<77x1536xf32>
    %63 = stablehlo.multiply %62, %62 : tensor<77x1536xf32>
    %64 = stablehlo.multiply %63, %62 : tensor<77x1536xf32>
    %cst_13 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %65 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<77x1536xf32>
    %66 = stablehlo.multiply %65, %64 : tensor<77x1536xf32>
    %67 = stablehlo.add %62, %66 : tensor<77x1536xf32>
    %cst_14 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %68 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<77x1536xf32>
    %69 = stablehlo.multiply %68, %67 : tensor<77x1536xf32>
    %70 = stablehlo.tanh %69 : tensor<77x1536xf32>
    %cst_15 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %71 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<77x1536xf32>
    %72 = stablehlo.add %71, %70 : tensor<77x1536xf32>
    %cst_16 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %73 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<77x1536xf32>
    %74 = stablehlo.multiply %73, %72 : tensor<77x1536xf32>
    %75 = stablehlo.multiply %62, %74 : tensor<77x1536xf32>
    %76 = stablehlo.dot_general %75, %arg4, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<77x1536xf32>, tensor<1536x384xf32>) -> tensor<77x384xf32>
    %77 = stablehlo.add %45, %76 : tensor<77x384xf32>
    return %77 : tensor<77x384xf32>
  }
}
