module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<1023x3073xf32>, %arg1: tensor<3073xf32>) -> (tensor<1023x3073xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<3073xf32>) -> tensor<1x3073xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<1x3073xf32>) -> tensor<1023x3073xf32>
    %2 = stablehlo.add %arg0, %1 : tensor<1023x3073xf32>
    %cst = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1023x3073xf32>
    %4 = stablehlo.multiply %3, %2 : tensor<1023x3073xf32>
    %5 = stablehlo.negate %2 : tensor<1023x3073xf32>
    %cst_0 = stablehlo.constant dense<0.707106769> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1023x3073xf32>
    %7 = stablehlo.multiply %5, %6 : tensor<1023x3073xf32>
    %8 = chlo.erfc %7 : tensor<1023x3073xf32> -> tensor<1023x3073xf32>
    %9 = stablehlo.multiply %4, %8 : tensor<1023x3073xf32>
    return %9 : tensor<1023x3073xf32>
  }
}
