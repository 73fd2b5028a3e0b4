module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<32x65x33x64xf32>) -> (tensor<32x33x65x64xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.transpose %arg0, dims = [0, 2, 1, 3] : (tensor<32x65x33x64xf32>) -> tensor<32x33x65x64xf32>
    return %0 : tensor<32x33x65x64xf32>
  }
}
