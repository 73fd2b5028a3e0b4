module @jit_mlp attributes {jax.uses_shape_polymorphism = true, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<?x256xf32>, %arg1: tensor<256x512xf32>, %arg2: tensor<512xf32>, %arg3: tensor<512x512xf32>, %arg4: tensor<512xf32>, %arg5: tensor<512x10xf32>) -> (tensor<?x10xf32> {jax.result_info = "result"}) {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x256xf32>) -> tensor<i32>
    %1 = stablehlo.compare GE, %0, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%1, %0) {api_version = 2 : i32, error_message = "Input shapes do not match the polymorphic shapes specification. Expected value >= 1 for dimension variable 'b'. Using the following polymorphic shapes specifications: args[0].shape = (b, 256). Obtained dimension variables: 'b' = {0} from specification 'b' for dimension args[0].shape[0] (= {0}), . Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for more details.", has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
    %2 = call @_wrapped_jax_export_main(%0, %arg0, %arg1, %arg2, %arg3, %arg4, %arg5) : (tensor<i32>, tensor<?x256xf32>, tensor<256x512xf32>, tensor<512xf32>, tensor<512x512xf32>, tensor<512xf32>, tensor<512x10xf32>) -> tensor<?x10xf32>
    return %2 : tensor<?x10xf32>
  }
  func.func private @_wrapped_jax_export_main(%arg0: tensor<i32> {jax.global_constant = "b"}, %arg1: tensor<?x256xf32>, %arg2: tensor<256x512xf32>, %arg3: tensor<512xf32>, %arg4: tensor<512x512xf32>, %arg5: tensor<512xf32>, %arg6: tensor<512x10xf32>) -> (tensor<?x10xf32> {jax.result_info = "result"}) {
    %c = stablehlo.constant dense<512> : tensor<1xi32>
    %0 = stablehlo.dot_general %arg1, %arg2, contracting_dims = [1] x [0] : (tensor<?x256xf32>, tensor<256x512xf32>) -> tensor<?x512xf32>
    %1 = stablehlo.broadcast_in_dim %arg3, dims = [1] : (tensor<512xf32>) -> tensor<1x512xf32>
    %2 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %3 = stablehlo.concatenate %2, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %4 = stablehlo.dynamic_broadcast_in_dim %1, %3, dims = [0, 1] : (tensor<1x512xf32>, tensor<2xi32>) -> tensor<?x512xf32>
    %5 = stablehlo.add %0, %4 : tensor<?x512xf32>
    %6 = call @relu(%arg0, %5) : (tensor<i32>, tensor<?x512xf32>) -> tensor<?x512xf32>
    %7 = stablehlo.dot_general %6, %arg4, contracting_dims = [1] x [0] : (tensor<?x512xf32>, tensor<512x512xf32>) -> tensor<?x512xf32>
    %8 = stablehlo.broadcast_in_dim %arg5, dims = [1] : (tensor<512xf32>) -> tensor<1x512xf32>
    %9 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %10 = stablehlo.concatenate %9, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %11 = stablehlo.dynamic_broadcast_in_dim %8, %10, dims = [0, 1] : (tensor<1x512xf32>, tensor<2xi32>) -> tensor<?x512xf32>
    %12 = stablehlo.add %7, %11 : tensor<?x512xf32>
    %13 = call @relu(%arg0, %12) : (tensor<i32>, tensor<?x512xf32>) -> tensor<?x512xf32>
    %14 = stablehlo.dot_general %13, %arg6, contracting_dims = [1] x [0] : (tensor<?x512xf32>, tensor<512x10xf32>) -> tensor<?x10xf32>
    return %14 : tensor<?x10xf32>
  }
  func.func private @relu(%arg0: tensor<i32> {jax.global_constant = "b"}, %arg1: tensor<?x512xf32>) -> tensor<?x512xf32> {
    %c = stablehlo.constant dense<512> : tensor<1xi32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %1 = stablehlo.concatenate %0, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %2 = stablehlo.dynamic_broadcast_in_dim %cst, %1, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x512xf32>
    %3 = stablehlo.maximum %arg1, %2 : tensor<?x512xf32>
    return %3 : tensor<?x512xf32>
  }
}
