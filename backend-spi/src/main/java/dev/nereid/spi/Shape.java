package dev.nereid.spi;

import java.util.Arrays;

/**
 * The dimensions of a tensor, outermost first. Immutable.
 *
 * <p>A dimension of {@link #VARIABLE} (−1) stands for any size; it appears in the specification of a model's tensors,
 * never in the shape of a {@link Tensor}. A shape without dimensions is a scalar of one element.
 *
 * @since 1.0
 */
public final class Shape {
    /** A dimension with a size that differs from request to request. */
    public static final long VARIABLE = -1;

    /** The shape without dimensions: one element. */
    public static final Shape SCALAR = new Shape(new long[0]);

    private final long[] dims;

    private Shape(long[] dims) {
        this.dims = dims;
    }

    /**
     * Creates a shape.
     *
     * @param dims the dimensions, outermost first, each 0 or more, or {@link #VARIABLE}; copied
     * @return the shape
     * @throws IllegalArgumentException if a dimension is below −1
     */
    public static Shape of(long... dims) {
        for (long dim : dims) {
            if (dim < VARIABLE) {
                throw new IllegalArgumentException("dims: " + Arrays.toString(dims) + " (expected: each >= -1)");
            }
        }
        return dims.length == 0 ? SCALAR : new Shape(dims.clone());
    }

    /**
     * Returns the number of dimensions.
     *
     * @return 0 for a scalar
     */
    public int rank() {
        return dims.length;
    }

    /**
     * Returns one dimension.
     *
     * @param index from 0 (outermost) to {@code rank() - 1}
     * @return its size, or {@link #VARIABLE}
     * @throws IndexOutOfBoundsException if there is no such dimension
     */
    public long dim(int index) {
        return dims[index];
    }

    /**
     * Returns the dimensions.
     *
     * @return a new array, outermost first
     */
    public long[] toArray() {
        return dims.clone();
    }

    /**
     * Says whether every dimension has a size.
     *
     * @return {@code false} if any dimension is {@link #VARIABLE}
     */
    public boolean isConcrete() {
        for (long dim : dims) {
            if (dim == VARIABLE) {
                return false;
            }
        }
        return true;
    }

    /**
     * Returns the number of elements.
     *
     * @return the product of the dimensions, 1 for a scalar
     * @throws ArithmeticException if the product does not fit a {@code long}, in any order of the dimensions
     * @throws IllegalStateException if a dimension is {@link #VARIABLE}
     */
    public long elementCount() {
        long product = 1;
        boolean empty = false;
        for (long dim : dims) {
            if (dim == VARIABLE) {
                throw new IllegalStateException("shape: " + this + " (expected: no variable dimension)");
            }
            empty |= dim == 0;
            product = Math.multiplyExact(product, Math.max(dim, 1));
        }
        return empty ? 0 : product;
    }

    /**
     * Returns the size in memory of a tensor of this shape.
     *
     * @param type a type of fixed size
     * @return the size in bytes
     * @throws ArithmeticException if it does not fit a {@code long}
     * @throws IllegalArgumentException if {@code type} has no fixed size
     * @throws IllegalStateException if a dimension is {@link #VARIABLE}
     */
    public long byteSize(DataType type) {
        if (!type.isFixedSize()) {
            throw new IllegalArgumentException("type: " + type + " (expected: a type of fixed size)");
        }
        return Math.multiplyExact(elementCount(), (long) type.byteSize());
    }

    /**
     * Returns this shape with one more dimension in front.
     *
     * @param dim the new outermost dimension
     * @return the longer shape
     */
    public Shape prepend(long dim) {
        long[] longer = new long[dims.length + 1];
        longer[0] = dim;
        System.arraycopy(dims, 0, longer, 1, dims.length);
        return of(longer);
    }

    /**
     * Returns this shape with another outermost dimension.
     *
     * @param dim the size that replaces the first dimension
     * @return the shape
     * @throws IndexOutOfBoundsException if this shape is a scalar
     */
    public Shape withFirst(long dim) {
        long[] changed = dims.clone();
        changed[0] = dim;
        return of(changed);
    }

    /**
     * Returns this shape without its outermost dimension.
     *
     * @return the shorter shape
     * @throws IndexOutOfBoundsException if this shape is a scalar
     */
    public Shape dropFirst() {
        if (dims.length == 0) {
            throw new IndexOutOfBoundsException("shape: [] (expected: at least one dimension)");
        }
        return dims.length == 1 ? SCALAR : new Shape(Arrays.copyOfRange(dims, 1, dims.length));
    }

    /**
     * Says whether a concrete shape fits this one, in which {@link #VARIABLE} stands for any size.
     *
     * @param concrete the shape to test
     * @return {@code true} if ranks agree and every dimension here is variable or the same
     */
    public boolean accepts(Shape concrete) {
        if (concrete.dims.length != dims.length) {
            return false;
        }
        for (int i = 0; i < dims.length; i++) {
            if (dims[i] != VARIABLE && dims[i] != concrete.dims[i]) {
                return false;
            }
        }
        return true;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Shape shape && Arrays.equals(dims, shape.dims);
    }

    @Override
    public int hashCode() {
        return Arrays.hashCode(dims);
    }

    /** Returns the dimensions as in the protocols' messages, without blanks: {@code [-1,16]}. */
    @Override
    public String toString() {
        StringBuilder text = new StringBuilder("[");
        for (int i = 0; i < dims.length; i++) {
            text.append(i == 0 ? "" : ",").append(dims[i]);
        }
        return text.append(']').toString();
    }
}
