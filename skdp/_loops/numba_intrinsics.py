"""Instructions of the processor that numba does not choose for compiled loops."""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

# Arguments of LLVM's llvm.prefetch: a read, of values that are used again, of data.
READ, KEEP, DATA = 0, 3, 1
# Number of values that are multiplied at once, and number of such vectors of sums.
LANES = 8
N_SUMS = 2
DOUBLE = ir.DoubleType()
INTEGER = ir.IntType(32)


@intrinsic
def prefetch(typing_context, array, index):
    """Request the line of memory with an entry of an array. Nothing is computed.

    The index is a tuple of integers.
    """
    signature = types.void(array, index)

    def generate(context, builder, signature, arguments):
        """Emit the prefetch of an entry's address, as numba's `intrinsic` requires."""
        array_type = signature.args[0]
        array = context.make_array(array_type)(context, builder, arguments[0])
        indices = cgutils.unpack_tuple(builder, arguments[1])
        entry = cgutils.get_item_pointer(context, builder, array_type, array, indices)
        address = builder.bitcast(entry, ir.IntType(8).as_pointer())
        function_type = ir.FunctionType(ir.VoidType(), [address.type, *[INTEGER] * 3])
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [address.type], fnty=function_type
        )
        builder.call(function, [address, INTEGER(READ), INTEGER(KEEP), INTEGER(DATA)])
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def row_product(typing_context, row, weights):
    """Return the sum of products of two contiguous vectors: float32 or float64, and float64.

    A loop in Python would add one product after another: without ``fastmath``, which would leave
    the order to the compiler, numba may not reorder a sum of floats to add several at once.
    Each of sixteen sums adds every sixteenth product. The sums are then added pairwise, and the sum
    of the products that are left over is added last. The order depends only on the length, and no
    product is fused with a sum.
    """
    signature = types.float64(row, weights)

    def generate(context, builder, signature, arguments):
        """Emit the sums of products and return the total, as numba's `intrinsic` requires.

        numba calls this function when it compiles a loop, and inserts the instructions there.
        """
        row_type, weights_type = signature.args
        x = context.make_array(row_type)(context, builder, arguments[0])
        w = context.make_array(weights_type)(context, builder, arguments[1])
        size = cgutils.unpack_tuple(builder, w.shape)[0]
        vector = ir.VectorType(DOUBLE, LANES)
        zero = ir.Constant(vector, [0.0] * LANES)
        sums = [cgutils.alloca_once_value(builder, zero) for _ in range(N_SUMS)]
        tail_sum = cgutils.alloca_once_value(builder, ir.Constant(DOUBLE, 0.0))
        width = size.type(LANES * N_SUMS)
        tiled = builder.sub(size, builder.srem(size, width))

        def load(array, array_type, position, n_lanes):
            """Emit the load of `n_lanes` consecutive values as doubles, one or a vector of them.

            Only the alignment of single values is assumed, not that of vectors.
            """
            itemsize = context.get_abi_sizeof(context.get_data_type(array_type.dtype))
            address = builder.gep(array.data, [position])
            value_type = address.type.pointee
            if n_lanes > 1:
                value_type = ir.VectorType(value_type, n_lanes)
                address = builder.bitcast(address, value_type.as_pointer())
            values = builder.load(address, align=itemsize)
            double_type = DOUBLE
            if n_lanes > 1:
                double_type = ir.VectorType(DOUBLE, n_lanes)
            if value_type == double_type:
                return values
            return builder.fpext(values, double_type)

        def add_products(total, position, n_lanes):
            """Add the products of `n_lanes` values from a position to a sum, in place."""
            product = builder.fmul(
                load(x, row_type, position, n_lanes), load(w, weights_type, position, n_lanes)
            )
            builder.store(builder.fadd(builder.load(total), product), total)

        with cgutils.for_range_slice(builder, size.type(0), tiled, width) as (position, _):
            for number, total in enumerate(sums):
                start = builder.add(position, size.type(number * LANES))
                add_products(total, start, LANES)
        with cgutils.for_range_slice(builder, tiled, size, size.type(1)) as (position, _):
            add_products(tail_sum, position, 1)
        lanes = []
        for total in sums:
            values = builder.load(total)
            lanes += [builder.extract_element(values, INTEGER(i)) for i in range(LANES)]
        while len(lanes) > 1:
            lanes = [builder.fadd(*pair) for pair in zip(lanes[::2], lanes[1::2], strict=True)]
        return builder.fadd(lanes[0], builder.load(tail_sum))

    return signature, generate
