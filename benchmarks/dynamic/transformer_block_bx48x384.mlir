module @jit_block attributes {jax.uses_shape_polymorphism = true, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<?x48x384xf32>, %arg1: tensor<384x1152xf32>, %arg2: tensor<384x384xf32>, %arg3: tensor<384x1536xf32>, %arg4: tensor<1536x384xf32>) -> (tensor<?x48x384xf32> {jax.result_info = "result"}) {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x48x384xf32>) -> tensor<i32>
    %1 = stablehlo.compare GE, %0, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%1, %0) {api_version = 2 : i32, error_message = "Input shapes do not match the polymorphic shapes specification. Expected value >= 1 for dimension variable 'b'. Using the following polymorphic shapes specifications: args[0].shape = (b, 48, 384). Obtained dimension variables: 'b' = {0} from specification 'b' for dimension args[0].shape[0] (= {0}), . Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for more details.", has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
    %2 = call @_wrapped_jax_export_main(%0, %arg0, %arg1, %arg2, %arg3, %arg4) : (tensor<i32>, tensor<?x48x384xf32>, tensor<384x1152xf32>, tensor<384x384xf32>, tensor<384x1536xf32>, tensor<1536x384xf32>) -> tensor<?x48x384xf32>
    return %2 : tensor<?x48x384xf32>
  }
  func.func private @_wrapped_jax_export_main(%arg0: tensor<i32> {jax.global_constant = "b"}, %arg1: tensor<?x48x384xf32>, %arg2: tensor<384x1152xf32>, %arg3: tensor<384x384xf32>, %arg4: tensor<384x1536xf32>, %arg5: tensor<1536x384xf32>) -> (tensor<?x48x384xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_1 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %c = stablehlo.constant dense<1536> : tensor<1xi32>
    %cst_2 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %cst_3 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_4 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %c_5 = stablehlo.constant dense<64> : tensor<1xi32>
    %c_6 = stablehlo.constant dense<6> : tensor<1xi32>
    %c_7 = stablehlo.constant dense<1152> : tensor<1xi32>
    %c_8 = stablehlo.constant dense<768> : tensor<1xi32>
    %c_9 = stablehlo.constant dense<0> : tensor<1xi32>
    %cst_10 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %c_11 = stablehlo.constant dense<384> : tensor<1xi32>
    %cst_12 = stablehlo.constant dense<3.840000e+02> : tensor<f32>
    %c_13 = stablehlo.constant dense<1> : tensor<1xi32>
    %c_14 = stablehlo.constant dense<48> : tensor<1xi32>
    %cst_15 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg1 init: %cst_15) applies stablehlo.add across dimensions = [2] : (tensor<?x48x384xf32>, tensor<f32>) -> tensor<?x48xf32>
    %1 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.concatenate %1, %c_14, %c_13, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %3 = stablehlo.dynamic_broadcast_in_dim %0, %2, dims = [0, 1] : (tensor<?x48xf32>, tensor<3xi32>) -> tensor<?x48x1xf32>
    %4 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %5 = stablehlo.concatenate %4, %c_14, %c_13, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %6 = stablehlo.dynamic_broadcast_in_dim %cst_12, %5, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x48x1xf32>
    %7 = stablehlo.divide %3, %6 : tensor<?x48x1xf32>
    %8 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %9 = stablehlo.concatenate %8, %c_14, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %10 = stablehlo.dynamic_broadcast_in_dim %7, %9, dims = [0, 1, 2] : (tensor<?x48x1xf32>, tensor<3xi32>) -> tensor<?x48x384xf32>
    %11 = stablehlo.subtract %arg1, %10 : tensor<?x48x384xf32>
    %12 = stablehlo.multiply %11, %11 : tensor<?x48x384xf32>
    %13 = stablehlo.reduce(%12 init: %cst_15) applies stablehlo.add across dimensions = [2] : (tensor<?x48x384xf32>, tensor<f32>) -> tensor<?x48xf32>
    %14 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %15 = stablehlo.concatenate %14, %c_14, %c_13, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %16 = stablehlo.dynamic_broadcast_in_dim %13, %15, dims = [0, 1] : (tensor<?x48xf32>, tensor<3xi32>) -> tensor<?x48x1xf32>
    %17 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %18 = stablehlo.concatenate %17, %c_14, %c_13, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %19 = stablehlo.dynamic_broadcast_in_dim %cst_12, %18, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x48x1xf32>
    %20 = stablehlo.divide %16, %19 : tensor<?x48x1xf32>
    %21 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %22 = stablehlo.concatenate %21, %c_14, %c_13, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %23 = stablehlo.dynamic_broadcast_in_dim %cst_10, %22, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x48x1xf32>
    %24 = stablehlo.add %20, %23 : tensor<?x48x1xf32>
    %25 = stablehlo.rsqrt %24 : tensor<?x48x1xf32>
    %26 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %27 = stablehlo.concatenate %26, %c_14, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %28 = stablehlo.dynamic_broadcast_in_dim %25, %27, dims = [0, 1, 2] : (tensor<?x48x1xf32>, tensor<3xi32>) -> tensor<?x48x384xf32>
    %29 = stablehlo.multiply %11, %28 : tensor<?x48x384xf32>
    %30 = stablehlo.dot_general %29, %arg2, contracting_dims = [2] x [0] : (tensor<?x48x384xf32>, tensor<384x1152xf32>) -> tensor<?x48x1152xf32>
    %31 = stablehlo.concatenate %c_9, %c_9, %c_9, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %32 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %33 = stablehlo.concatenate %32, %c_14, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %34 = stablehlo.concatenate %c_13, %c_13, %c_13, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %35 = stablehlo.real_dynamic_slice %30, %31, %33, %34 : (tensor<?x48x1152xf32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>) -> tensor<?x48x384xf32>
    %36 = stablehlo.concatenate %c_9, %c_9, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %37 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %38 = stablehlo.concatenate %37, %c_14, %c_8, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %39 = stablehlo.concatenate %c_13, %c_13, %c_13, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %40 = stablehlo.real_dynamic_slice %30, %36, %38, %39 : (tensor<?x48x1152xf32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>) -> tensor<?x48x384xf32>
    %41 = stablehlo.concatenate %c_9, %c_9, %c_8, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %42 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %43 = stablehlo.concatenate %42, %c_14, %c_7, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %44 = stablehlo.concatenate %c_13, %c_13, %c_13, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %45 = stablehlo.real_dynamic_slice %30, %41, %43, %44 : (tensor<?x48x1152xf32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>) -> tensor<?x48x384xf32>
    %46 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %47 = stablehlo.concatenate %46, %c_14, %c_6, %c_5, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %48 = stablehlo.dynamic_reshape %35, %47 : (tensor<?x48x384xf32>, tensor<4xi32>) -> tensor<?x48x6x64xf32>
    %49 = stablehlo.transpose %48, dims = [0, 2, 1, 3] : (tensor<?x48x6x64xf32>) -> tensor<?x6x48x64xf32>
    %50 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %51 = stablehlo.concatenate %50, %c_14, %c_6, %c_5, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %52 = stablehlo.dynamic_reshape %40, %51 : (tensor<?x48x384xf32>, tensor<4xi32>) -> tensor<?x48x6x64xf32>
    %53 = stablehlo.transpose %52, dims = [0, 2, 1, 3] : (tensor<?x48x6x64xf32>) -> tensor<?x6x48x64xf32>
    %54 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %55 = stablehlo.concatenate %54, %c_14, %c_6, %c_5, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %56 = stablehlo.dynamic_reshape %45, %55 : (tensor<?x48x384xf32>, tensor<4xi32>) -> tensor<?x48x6x64xf32>
    %57 = stablehlo.transpose %56, dims = [0, 2, 1, 3] : (tensor<?x48x6x64xf32>) -> tensor<?x6x48x64xf32>
    %58 = stablehlo.transpose %53, dims = [0, 1, 3, 2] : (tensor<?x6x48x64xf32>) -> tensor<?x6x64x48xf32>
    %59 = stablehlo.dot_general %49, %58, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<?x6x48x64xf32>, tensor<?x6x64x48xf32>) -> tensor<?x6x48x48xf32>
    %60 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %61 = stablehlo.concatenate %60, %c_6, %c_14, %c_14, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %62 = stablehlo.dynamic_broadcast_in_dim %cst_4, %61, dims = [] : (tensor<f32>, tensor<4xi32>) -> tensor<?x6x48x48xf32>
    %63 = stablehlo.divide %59, %62 : tensor<?x6x48x48xf32>
    %64 = stablehlo.reduce(%63 init: %cst_3) applies stablehlo.maximum across dimensions = [3] : (tensor<?x6x48x48xf32>, tensor<f32>) -> tensor<?x6x48xf32>
    %65 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %66 = stablehlo.concatenate %65, %c_6, %c_14, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %67 = stablehlo.dynamic_broadcast_in_dim %cst_3, %66, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x6x48xf32>
    %68 = stablehlo.maximum %67, %64 : tensor<?x6x48xf32>
    %69 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %70 = stablehlo.concatenate %69, %c_6, %c_14, %c_13, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %71 = stablehlo.dynamic_broadcast_in_dim %68, %70, dims = [0, 1, 2] : (tensor<?x6x48xf32>, tensor<4xi32>) -> tensor<?x6x48x1xf32>
    %72 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %73 = stablehlo.concatenate %72, %c_6, %c_14, %c_14, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %74 = stablehlo.dynamic_broadcast_in_dim %71, %73, dims = [0, 1, 2, 3] : (tensor<?x6x48x1xf32>, tensor<4xi32>) -> tensor<?x6x48x48xf32>
    %75 = stablehlo.subtract %63, %74 : tensor<?x6x48x48xf32>
    %76 = stablehlo.exponential %75 : tensor<?x6x48x48xf32>
    %77 = stablehlo.reduce(%76 init: %cst_15) applies stablehlo.add across dimensions = [3] : (tensor<?x6x48x48xf32>, tensor<f32>) -> tensor<?x6x48xf32>
    %78 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %79 = stablehlo.concatenate %78, %c_6, %c_14, %c_13, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %80 = stablehlo.dynamic_broadcast_in_dim %77, %79, dims = [0, 1, 2] : (tensor<?x6x48xf32>, tensor<4xi32>) -> tensor<?x6x48x1xf32>
    %81 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %82 = stablehlo.concatenate %81, %c_6, %c_14, %c_14, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %83 = stablehlo.dynamic_broadcast_in_dim %80, %82, dims = [0, 1, 2, 3] : (tensor<?x6x48x1xf32>, tensor<4xi32>) -> tensor<?x6x48x48xf32>
    %84 = stablehlo.divide %76, %83 : tensor<?x6x48x48xf32>
    %85 = stablehlo.dot_general %84, %57, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<?x6x48x48xf32>, tensor<?x6x48x64xf32>) -> tensor<?x6x48x64xf32>
    %86 = stablehlo.transpose %85, dims = [0, 2, 1, 3] : (tensor<?x6x48x64xf32>) -> tensor<?x48x6x64xf32>
    %87 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %88 = stablehlo.concatenate %87, %c_14, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %89 = stablehlo.dynamic_reshape %86, %88 : (tensor<?x48x6x64xf32>, tensor<3xi32>) -> tensor<?x48x384xf32>
    %90 = stablehlo.dot_general %89, %arg3, contracting_dims = [2] x [0] : (tensor<?x48x384xf32>, tensor<384x384xf32>) -> tensor<?x48x384xf32>
    %91 = stablehlo.add %arg1, %90 : tensor<?x48x384xf32>
    %92 = stablehlo.reduce(%91 init: %cst_15) applies stablehlo.add across dimensions = [2] : (tensor<?x48x384xf32>, tensor<f32>) -> tensor<?x48xf32>
    %93 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %94 = stablehlo.concatenate %93, %c_14, %c_13, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %95 = stablehlo.dynamic_broadcast_in_dim %92, %94, dims = [0, 1] : (tensor<?x48xf32>, tensor<3xi32>) -> tensor<?x48x1xf32>
    %96 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %97 = stablehlo.concatenate %96, %c_14, %c_13, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %98 = stablehlo.dynamic_broadcast_in_dim %cst_12, %97, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x48x1xf32>
    %99 = stablehlo.divide %95, %98 : tensor<?x48x1xf32>
    %100 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %101 = stablehlo.concatenate %100, %c_14, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %102 = stablehlo.dynamic_broadcast_in_dim %99, %101, dims = [0, 1, 2] : (tensor<?x48x1xf32>, tensor<3xi32>) -> tensor<?x48x384xf32>
    %103 = stablehlo.subtract %91, %102 : tensor<?x48x384xf32>
    %104 = stablehlo.multiply %103, %103 : tensor<?x48x384xf32>
    %105 = stablehlo.reduce(%104 init: %cst_15) applies stablehlo.add across dimensions = [2] : (tensor<?x48x384xf32>, tensor<f32>) -> tensor<?x48xf32>
    %106 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %107 = stablehlo.concatenate %106, %c_14, %c_13, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %108 = stablehlo.dynamic_broadcast_in_dim %105, %107, dims = [0, 1] : (tensor<?x48xf32>, tensor<3xi32>) -> tensor<?x48x1xf32>
    %109 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %110 = stablehlo.concatenate %109, %c_14, %c_13, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %111 = stablehlo.dynamic_broadcast_in_dim %cst_12, %110, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x48x1xf32>
    %112 = stablehlo.divide %108, %111 : tensor<?x48x1xf32>
    %113 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %114 = stablehlo.concatenate %113, %c_14, %c_13, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %115 = stablehlo.dynamic_broadcast_in_dim %cst_10, %114, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x48x1xf32>
    %116 = stablehlo.add %112, %115 : tensor<?x48x1xf32>
    %117 = stablehlo.rsqrt %116 : tensor<?x48x1xf32>
    %118 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %119 = stablehlo.concatenate %118, %c_14, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %120 = stablehlo.dynamic_broadcast_in_dim %117, %119, dims = [0, 1, 2] : (tensor<?x48x1xf32>, tensor<3xi32>) -> tensor<?x48x384xf32>
    %121 = stablehlo.multiply %103, %120 : tensor<?x48x384xf32>
    %122 = stablehlo.dot_general %121, %arg4, contracting_dims = [2] x [0] : (tensor<?x48x384xf32>, tensor<384x1536xf32>) -> tensor<?x48x1536xf32>
    %123 = stablehlo.multiply %122, %122 : tensor<?x48x1536xf32>
    %124 = stablehlo.multiply %123, %122 : tensor<?x48x1536xf32>
    %125 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %126 = stablehlo.concatenate %125, %c_14, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %127 = stablehlo.dynamic_broadcast_in_dim %cst_2, %126, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x48x1536xf32>
    %128 = stablehlo.multiply %127, %124 : tensor<?x48x1536xf32>
    %129 = stablehlo.add %122, %128 : tensor<?x48x1536xf32>
    %130 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %131 = stablehlo.concatenate %130, %c_14, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %132 = stablehlo.dynamic_broadcast_in_dim %cst_1, %131, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x48x1536xf32>
    %133 = stablehlo.multiply %132, %129 : tensor<?x48x1536xf32>
    %134 = stablehlo.tanh %133 : tensor<?x48x1536xf32>
    %135 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %136 = stablehlo.concatenate %135, %c_14, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %137 = stablehlo.dynamic_broadcast_in_dim %cst_0, %136, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x48x1536xf32>
    %138 = stablehlo.add %137, %134 : tensor<?x48x1536xf32>
    %139 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %140 = stablehlo.concatenate %139, %c_14, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %141 = stablehlo.dynamic_broadcast_in_dim %cst, %140, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x48x1536xf32>
    %142 = stablehlo.multiply %141, %138 : tensor<?x48x1536xf32>
    %143 = stablehlo.multiply %122, %142 : tensor<?x48x1536xf32>
    %144 = stablehlo.dot_general %143, %arg5, contracting_dims = [2] x [0] : (tensor<?x48x1536xf32>, tensor<1536x384xf32>) -> tensor<?x48x384xf32>
    %145 = stablehlo.add %91, %144 : tensor<?x48x384xf32>
    return %145 : tensor<?x48x384xf32>
  }
}
