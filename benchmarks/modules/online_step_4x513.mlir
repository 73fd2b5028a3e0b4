module @jit_online_step attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<512x1536xf32> {tf.aliasing_output = 0 : i32}, %arg1: tensor<512x512xf32> {tf.aliasing_output = 1 : i32}, %arg2: tensor<512x1536xf32> {tf.aliasing_output = 2 : i32}, %arg3: tensor<512x512xf32> {tf.aliasing_output = 3 : i32}, %arg4: tensor<512x1536xf32> {tf.aliasing_output = 4 : i32}, %arg5: tensor<512x512xf32> {tf.aliasing_output = 5 : i32}, %arg6: tensor<4x8x513x64xf32> {tf.aliasing_output = 6 : i32}, %arg7: tensor<4x8x513x64xf32> {tf.aliasing_output = 7 : i32}, %arg8: tensor<4x512xf32>, %arg9: tensor<4x512xf32>, %arg10: tensor<i32>) -> (tensor<512x1536xf32> {jax.result_info = "result[0]"}, tensor<512x512xf32> {jax.result_info = "result[1]"}, tensor<512x1536xf32> {jax.result_info = "result[2]"}, tensor<512x512xf32> {jax.result_info = "result[3]"}, tensor<512x1536xf32> {jax.result_info = "result[4]"}, tensor<512x512xf32> {jax.result_info = "result[5]"}, tensor<4x8x513x64xf32> {jax.result_info = "result[6]"}, tensor<4x8x513x64xf32> {jax.result_info = "result[7]"}, tensor<f32> {jax.result_info = "result[8]"}) {
    %0 = stablehlo.dot_general %arg8, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x512xf32>, tensor<512x1536xf32>) -> tensor<4x1536xf32>
    %1 = stablehlo.slice %0 [0:4, 0:512] : (tensor<4x1536xf32>) -> tensor<4x512xf32>
    %2 = stablehlo.slice %0 [0:4, 512:1024] : (tensor<4x1536xf32>) -> tensor<4x512xf32>
    %3 = stablehlo.slice %0 [0:4, 1024:1536] : (tensor<4x1536xf32>) -> tensor<4x512xf32>
    %4 = stablehlo.reshape %1 : (tensor<4x512xf32>) -> tensor<4x8x1x64xf32>
    %5 = stablehlo.reshape %2 : (tensor<4x512xf32>) -> tensor<4x8x1x64xf32>
    %6 = stablehlo.reshape %3 : (tensor<4x512xf32>) -> tensor<4x8x1x64xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %7 = stablehlo.compare LT, %arg10, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_0 = stablehlo.constant dense<513> : tensor<i32>
    %8 = stablehlo.add %arg10, %c_0 : tensor<i32>
    %9 = stablehlo.select %7, %8, %arg10 : tensor<i1>, tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %10 = stablehlo.dynamic_update_slice %arg6, %5, %c_1, %c_2, %9, %c_3 : (tensor<4x8x513x64xf32>, tensor<4x8x1x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x8x513x64xf32>
    %c_4 = stablehlo.constant dense<0> : tensor<i32>
    %11 = stablehlo.compare LT, %arg10, %c_4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_5 = stablehlo.constant dense<513> : tensor<i32>
    %12 = stablehlo.add %arg10, %c_5 : tensor<i32>
    %13 = stablehlo.select %11, %12, %arg10 : tensor<i1>, tensor<i32>
    %c_6 = stablehlo.constant dense<0> : tensor<i32>
    %c_7 = stablehlo.constant dense<0> : tensor<i32>
    %c_8 = stablehlo.constant dense<0> : tensor<i32>
    %14 = stablehlo.dynamic_update_slice %arg7, %6, %c_6, %c_7, %13, %c_8 : (tensor<4x8x513x64xf32>, tensor<4x8x1x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x8x513x64xf32>
    %15 = stablehlo.iota dim = 0 : tensor<513xi32>
    %16 = stablehlo.broadcast_in_dim %arg10, dims = [] : (tensor<i32>) -> tensor<513xi32>
    %17 = stablehlo.compare LE, %15, %16, SIGNED : (tensor<513xi32>, tensor<513xi32>) -> tensor<513xi1>
    %18 = stablehlo.dot_general %4, %10, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<4x8x1x64xf32>, tensor<4x8x513x64xf32>) -> tensor<4x8x1x513xf32>
    %cst = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %19 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x8x1x513xf32>
    %20 = stablehlo.divide %18, %19 : tensor<4x8x1x513xf32>
    %cst_9 = stablehlo.constant dense<-1.000000e+30> : tensor<f32>
    %21:2 = call @_where(%17, %20, %cst_9) : (tensor<513xi1>, tensor<4x8x1x513xf32>, tensor<f32>) -> (tensor<4x8x1x513xf32>, tensor<4x8x1x513xi1>)
    %cst_10 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %22 = stablehlo.reduce(%21#0 init: %cst_10) applies stablehlo.maximum across dimensions = [3] : (tensor<4x8x1x513xf32>, tensor<f32>) -> tensor<4x8x1xf32>
    %cst_11 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %23 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<4x8x1xf32>
    %24 = stablehlo.maximum %23, %22 : tensor<4x8x1xf32>
    %25 = stablehlo.broadcast_in_dim %24, dims = [0, 1, 2] : (tensor<4x8x1xf32>) -> tensor<4x8x1x1xf32>
    %26 = stablehlo.broadcast_in_dim %25, dims = [0, 1, 2, 3] : (tensor<4x8x1x1xf32>) -> tensor<4x8x1x513xf32>
    %27 = stablehlo.subtract %21#0, %26 : tensor<4x8x1x513xf32>
    %28 = stablehlo.exponential %27 : tensor<4x8x1x513xf32>
    %cst_12 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %29 = stablehlo.reduce(%28 init: %cst_12) applies stablehlo.add across dimensions = [3] : (tensor<4x8x1x513xf32>, tensor<f32>) -> tensor<4x8x1xf32>
    %30 = stablehlo.broadcast_in_dim %29, dims = [0, 1, 2] : (tensor<4x8x1xf32>) -> tensor<4x8x1x1xf32>
    %31 = stablehlo.broadcast_in_dim %30, dims = [0, 1, 2, 3] : (tensor<4x8x1x1xf32>) -> tensor<4x8x1x513xf32>
    %32 = stablehlo.divide %28, %31 : tensor<4x8x1x513xf32>
    %33 = stablehlo.multiply %30, %30 : tensor<4x8x1x1xf32>
    %cst_13 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %34 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<4x8x1x1xf32>
    %35 = stablehlo.divide %34, %33 : tensor<4x8x1x1xf32>
    %36 = stablehlo.dot_general %32, %14, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<4x8x1x513xf32>, tensor<4x8x513x64xf32>) -> tensor<4x8x1x64xf32>
    %37 = stablehlo.reshape %36 : (tensor<4x8x1x64xf32>) -> tensor<4x512xf32>
    %38 = stablehlo.dot_general %37, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x512xf32>, tensor<512x512xf32>) -> tensor<4x512xf32>
    %39 = stablehlo.subtract %38, %arg9 : tensor<4x512xf32>
    %40 = stablehlo.multiply %39, %39 : tensor<4x512xf32>
    %cst_14 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %41 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<4x512xf32>
    %42 = stablehlo.multiply %41, %39 : tensor<4x512xf32>
    %cst_15 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %43 = stablehlo.reduce(%40 init: %cst_15) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x512xf32>, tensor<f32>) -> tensor<f32>
    %cst_16 = stablehlo.constant dense<2.048000e+03> : tensor<f32>
    %44 = stablehlo.divide %43, %cst_16 : tensor<f32>
    %cst_17 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_18 = stablehlo.constant dense<2.048000e+03> : tensor<f32>
    %45 = stablehlo.divide %cst_17, %cst_18 : tensor<f32>
    %46 = stablehlo.broadcast_in_dim %45, dims = [] : (tensor<f32>) -> tensor<4x512xf32>
    %47 = stablehlo.multiply %46, %42 : tensor<4x512xf32>
    %48 = stablehlo.dot_general %47, %37, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x512xf32>, tensor<4x512xf32>) -> tensor<512x512xf32>
    %49 = stablehlo.transpose %48, dims = [1, 0] : (tensor<512x512xf32>) -> tensor<512x512xf32>
    %50 = stablehlo.dot_general %47, %arg1, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<4x512xf32>, tensor<512x512xf32>) -> tensor<4x512xf32>
    %51 = stablehlo.reshape %50 : (tensor<4x512xf32>) -> tensor<4x8x1x64xf32>
    %52 = stablehlo.dot_general %51, %32, batching_dims = [0, 1] x [0, 1], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<4x8x1x64xf32>, tensor<4x8x1x513xf32>) -> tensor<4x8x64x513xf32>
    %53 = stablehlo.transpose %52, dims = [0, 1, 3, 2] : (tensor<4x8x64x513xf32>) -> tensor<4x8x513x64xf32>
    %54 = stablehlo.dot_general %51, %14, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<4x8x1x64xf32>, tensor<4x8x513x64xf32>) -> tensor<4x8x1x513xf32>
    %55 = stablehlo.broadcast_in_dim %35, dims = [0, 1, 2, 3] : (tensor<4x8x1x1xf32>) -> tensor<4x8x1x513xf32>
    %56 = stablehlo.multiply %54, %55 : tensor<4x8x1x513xf32>
    %57 = stablehlo.multiply %56, %28 : tensor<4x8x1x513xf32>
    %cst_19 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %58 = stablehlo.reduce(%57 init: %cst_19) applies stablehlo.add across dimensions = [3] : (tensor<4x8x1x513xf32>, tensor<f32>) -> tensor<4x8x1xf32>
    %59 = stablehlo.reshape %58 : (tensor<4x8x1xf32>) -> tensor<4x8x1x1xf32>
    %60 = stablehlo.negate %59 : tensor<4x8x1x1xf32>
    %61 = stablehlo.broadcast_in_dim %30, dims = [0, 1, 2, 3] : (tensor<4x8x1x1xf32>) -> tensor<4x8x1x513xf32>
    %62 = stablehlo.divide %54, %61 : tensor<4x8x1x513xf32>
    %cst_20 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %63 = stablehlo.reduce(%60 init: %cst_20) applies stablehlo.add across dimensions = [2, 3] : (tensor<4x8x1x1xf32>, tensor<f32>) -> tensor<4x8xf32>
    %64 = stablehlo.broadcast_in_dim %63, dims = [0, 1] : (tensor<4x8xf32>) -> tensor<4x8x1xf32>
    %65 = stablehlo.broadcast_in_dim %64, dims = [0, 1, 2] : (tensor<4x8x1xf32>) -> tensor<4x8x1x513xf32>
    %66 = stablehlo.add %62, %65 : tensor<4x8x1x513xf32>
    %67 = stablehlo.multiply %66, %28 : tensor<4x8x1x513xf32>
    %68 = call @_where_0(%21#1, %67) : (tensor<4x8x1x513xi1>, tensor<4x8x1x513xf32>) -> tensor<4x8x1x513xf32>
    %cst_21 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %69 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<f32>) -> tensor<4x8x1x513xf32>
    %70 = stablehlo.divide %68, %69 : tensor<4x8x1x513xf32>
    %71 = stablehlo.dot_general %70, %4, batching_dims = [0, 1] x [0, 1], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<4x8x1x513xf32>, tensor<4x8x1x64xf32>) -> tensor<4x8x513x64xf32>
    %72 = stablehlo.dot_general %70, %10, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<4x8x1x513xf32>, tensor<4x8x513x64xf32>) -> tensor<4x8x1x64xf32>
    %c_22 = stablehlo.constant dense<0> : tensor<i32>
    %c_23 = stablehlo.constant dense<0> : tensor<i32>
    %c_24 = stablehlo.constant dense<0> : tensor<i32>
    %73 = stablehlo.dynamic_slice %53, %c_22, %c_23, %13, %c_24, sizes = [4, 8, 1, 64] : (tensor<4x8x513x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x8x1x64xf32>
    %c_25 = stablehlo.constant dense<0> : tensor<i32>
    %c_26 = stablehlo.constant dense<0> : tensor<i32>
    %c_27 = stablehlo.constant dense<0> : tensor<i32>
    %74 = stablehlo.dynamic_slice %71, %c_25, %c_26, %9, %c_27, sizes = [4, 8, 1, 64] : (tensor<4x8x513x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x8x1x64xf32>
    %75 = stablehlo.reshape %73 : (tensor<4x8x1x64xf32>) -> tensor<4x512xf32>
    %76 = stablehlo.reshape %74 : (tensor<4x8x1x64xf32>) -> tensor<4x512xf32>
    %77 = stablehlo.reshape %72 : (tensor<4x8x1x64xf32>) -> tensor<4x512xf32>
    %78 = stablehlo.concatenate %77, %76, %75, dim = 1 : (tensor<4x512xf32>, tensor<4x512xf32>, tensor<4x512xf32>) -> tensor<4x1536xf32>
    %79 = stablehlo.dot_general %78, %arg8, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x1536xf32>, tensor<4x512xf32>) -> tensor<1536x512xf32>
    %80 = stablehlo.transpose %79, dims = [1, 0] : (tensor<1536x512xf32>) -> tensor<512x1536xf32>
    %cst_28 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %81 = stablehlo.broadcast_in_dim %cst_28, dims = [] : (tensor<f32>) -> tensor<512x1536xf32>
    %82 = stablehlo.multiply %81, %arg2 : tensor<512x1536xf32>
    %cst_29 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %83 = stablehlo.broadcast_in_dim %cst_29, dims = [] : (tensor<f32>) -> tensor<512x1536xf32>
    %84 = stablehlo.multiply %83, %80 : tensor<512x1536xf32>
    %85 = stablehlo.add %82, %84 : tensor<512x1536xf32>
    %cst_30 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %86 = stablehlo.broadcast_in_dim %cst_30, dims = [] : (tensor<f32>) -> tensor<512x1536xf32>
    %87 = stablehlo.multiply %86, %arg4 : tensor<512x1536xf32>
    %cst_31 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %88 = stablehlo.broadcast_in_dim %cst_31, dims = [] : (tensor<f32>) -> tensor<512x1536xf32>
    %89 = stablehlo.multiply %88, %80 : tensor<512x1536xf32>
    %90 = stablehlo.multiply %89, %80 : tensor<512x1536xf32>
    %91 = stablehlo.add %87, %90 : tensor<512x1536xf32>
    %cst_32 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %92 = stablehlo.broadcast_in_dim %cst_32, dims = [] : (tensor<f32>) -> tensor<512x1536xf32>
    %93 = stablehlo.multiply %92, %85 : tensor<512x1536xf32>
    %94 = stablehlo.sqrt %91 : tensor<512x1536xf32>
    %cst_33 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %95 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<f32>) -> tensor<512x1536xf32>
    %96 = stablehlo.add %94, %95 : tensor<512x1536xf32>
    %97 = stablehlo.divide %93, %96 : tensor<512x1536xf32>
    %98 = stablehlo.subtract %arg0, %97 : tensor<512x1536xf32>
    %cst_34 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %99 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<512x512xf32>
    %100 = stablehlo.multiply %99, %arg3 : tensor<512x512xf32>
    %cst_35 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %101 = stablehlo.broadcast_in_dim %cst_35, dims = [] : (tensor<f32>) -> tensor<512x512xf32>
    %102 = stablehlo.multiply %101, %49 : tensor<512x512xf32>
    %103 = stablehlo.add %100, %102 : tensor<512x512xf32>
    %cst_36 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %104 = stablehlo.broadcast_in_dim %cst_36, dims = [] : (tensor<f32>) -> tensor<512x512xf32>
    %105 = stablehlo.multiply %104, %arg5 : tensor<512x512xf32>
    %cst_37 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %106 = stablehlo.broadcast_in_dim %cst_37, dims = [] : (tensor<f32>) -> tensor<512x512xf32>
    %107 = stablehlo.multiply %106, %49 : tensor<512x512xf32>
    %108 = stablehlo.multiply %107, %49 : tensor<512x512xf32>
    %109 = stablehlo.add %105, %108 : tensor<512x512xf32>
    %cst_38 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %110 = stablehlo.broadcast_in_dim %cst_38, dims = [] : (tensor<f32>) -> tensor<512x512xf32>
    %111 = stablehlo.multiply %110, %103 : tensor<512x512xf32>
    %112 = stablehlo.sqrt %109 : tensor<512x512xf32>
    %cst_39 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %113 = stablehlo.broadcast_in_dim %cst_39, dims = [] : (tensor<f32>) -> tensor<512x512xf32>
    %114 = stablehlo.add %112, %113 : tensor<512x512xf32>
    %115 = stablehlo.divide %111, %114 : tensor<512x512xf32>
    %116 = stablehlo.subtract %arg1, %115 : tensor<512x512xf32>
    return %98, %116, %85, %103, %91, %109, %10, %14, %44 : tensor<512x1536xf32>, tensor<512x512xf32>, tensor<512x1536xf32>, tensor<512x512xf32>, tensor<512x1536xf32>, tensor<512x512xf32>, tensor<4x8x513x64xf32>, tensor<4x8x513x64xf32>, tensor<f32>
  }
  func.func private @_where(%arg0: tensor<513xi1>, %arg1: tensor<4x8x1x513xf32>, %arg2: tensor<f32>) -> (tensor<4x8x1x513xf32>, tensor<4x8x1x513xi1>) {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [3] : (tensor<513xi1>) -> tensor<4x8x1x513xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4x8x1x513xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<4x8x1x513xi1>, tensor<4x8x1x513xf32>
    return %3, %1 : tensor<4x8x1x513xf32>, tensor<4x8x1x513xi1>
  }
  func.func private @_where_0(%arg0: tensor<4x8x1x513xi1>, %arg1: tensor<4x8x1x513xf32>) -> tensor<4x8x1x513xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x8x1x513xf32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<4x8x1x513xi1>, tensor<4x8x1x513xf32>
    return %1 : tensor<4x8x1x513xf32>
  }
}
