module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<5003x129xf32>, %arg1: tensor<20011xi32>) -> (tensor<20011x129xf32> {jax.result_info = "result"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<20011xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<20011xi32>, tensor<20011xi32>) -> tensor<20011xi1>
    %c_0 = stablehlo.constant dense<5003> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<20011xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<20011xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<20011xi1>, tensor<20011xi32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<20011xi32>) -> tensor<20011x1xi32>
    %6 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 129>}> : (tensor<5003x129xf32>, tensor<20011x1xi32>) -> tensor<20011x129xf32>
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %7 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<20011x129xf32>
    %8 = stablehlo.multiply %6, %7 : tensor<20011x129xf32>
    return %8 : tensor<20011x129xf32>
  }
}
