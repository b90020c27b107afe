package dev.nereid.backend.pytorch.archive;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.stream.Collectors;

/**
 * Compares the tensors that a pickle describes with the records that have their elements: PyTorch does not, and would
 * read beyond them. Nothing of the pickle is run. Confined to one pickle.
 *
 * <p>It follows the operations that PyTorch writes, and ends at another one, since PyTorch knows no more. The memory
 * that it needs has a bound, whatever the pickle is.
 *
 * <p>Pickles of more than {@link #MAX_BYTES} bytes are not checked, and only the first {@link #MAX_OPERATIONS}
 * operations of a pickle are: PyTorch reads all other tensors as they are described.
 */
final class PickledTensors {
    /** Larger pickles hold vocabularies: they are not checked, and left to PyTorch. */
    static final long MAX_BYTES = 8 << 20;

    /** Enough for ten thousand tensors. An operation makes at most one value, of under 100 bytes beyond its text. */
    static final int MAX_OPERATIONS = 500_000;

    /** Many times as many as PyTorch's own operations take. */
    static final int MAX_DIMENSIONS = 1000;

    private static final int MAX_TEXT_BYTES = 64;
    private static final int MAX_SHOWN_NUMBERS = 8;
    private static final int STORAGE_PARTS = 5;
    private static final int TENSOR_PARTS = 4;

    private static final Map<String, Integer> ELEMENT_BYTES = Map.ofEntries(
            Map.entry("torch.BoolStorage", 1),
            Map.entry("torch.ByteStorage", 1),
            Map.entry("torch.CharStorage", 1),
            Map.entry("torch.ShortStorage", 2),
            Map.entry("torch.HalfStorage", 2),
            Map.entry("torch.ComplexHalfStorage", 4),
            Map.entry("torch.Float8_e4m3fnStorage", 1),
            Map.entry("torch.Float8_e4m3fnuzStorage", 1),
            Map.entry("torch.Float8_e5m2Storage", 1),
            Map.entry("torch.Float8_e5m2fnuzStorage", 1),
            Map.entry("torch.Float8_e8m0fnuStorage", 1),
            Map.entry("torch.BFloat16Storage", 2),
            Map.entry("torch.IntStorage", 4),
            Map.entry("torch.FloatStorage", 4),
            Map.entry("torch.LongStorage", 8),
            Map.entry("torch.DoubleStorage", 8),
            Map.entry("torch.ComplexFloatStorage", 8),
            Map.entry("torch.ComplexDoubleStorage", 16),
            Map.entry("torch.QInt8Storage", 1),
            Map.entry("torch.QUInt8Storage", 1),
            Map.entry("torch.QInt32Storage", 4));

    /** Begins the elements of a tuple, a list or a dictionary. */
    private static final Object MARK = new Object();

    /** A value of no interest. */
    private static final Object OTHER = new Object();

    /** The elements of tensors: a record. */
    private record Storage(String key, long elements) {}

    /** A class or function. */
    private record Global(String name) {}

    /** A tuple. Its tuples that contain tuples themselves are {@link #OTHER}: a tensor has tuples of numbers. */
    private record Tuple(List<Object> parts, boolean containsTuples) {
        static final Tuple EMPTY = new Tuple(List.of(), false);

        static Tuple of(List<Object> parts) {
            boolean containsTuples = false;
            List<Object> copy = new ArrayList<>(parts.size());
            for (Object part : parts) {
                boolean isDeep = part instanceof Tuple tuple && tuple.containsTuples();
                containsTuples |= part instanceof Tuple && !isDeep;
                copy.add(isDeep ? OTHER : part);
            }
            return new Tuple(copy, containsTuples);
        }
    }

    private final ByteBuffer pickle;
    private final Map<String, Long> recordBytes;
    private final String prefix;
    private final List<Object> stack = new ArrayList<>();
    private final Map<Integer, Object> memo = new HashMap<>();

    private PickledTensors(byte[] pickle, Map<String, Long> recordBytes, String prefix) {
        this.pickle = ByteBuffer.wrap(pickle).order(ByteOrder.LITTLE_ENDIAN);
        this.recordBytes = recordBytes;
        this.prefix = prefix;
    }

    /** Refuses a pickle with a tensor larger than its record. Sizes are by name; its own records share a prefix. */
    static void check(byte[] pickle, Map<String, Long> recordBytes, String prefix) throws TorchFileException {
        PickledTensors tensors = new PickledTensors(pickle, recordBytes, prefix);
        try {
            int operations = 0;
            while (operations < MAX_OPERATIONS && tensors.step()) {
                operations++;
            }
        } catch (BufferUnderflowException | IndexOutOfBoundsException | NoSuchElementException e) {
            return; // PyTorch reports the fault
        }
    }

    /** Follows one operation; returns whether there are more. */
    private boolean step() throws TorchFileException {
        switch (Byte.toUnsignedInt(pickle.get())) {
            case 0x80 -> pickle.get(); // version
            case '(' -> stack.add(MARK);
            case ')' -> stack.add(Tuple.EMPTY);
            case ']', '}', 'N', 0x88, 0x89 -> stack.add(OTHER);
            case 'G' -> {
                pickle.getLong();
                stack.add(OTHER);
            }
            case 'K' -> stack.add((long) Byte.toUnsignedInt(pickle.get()));
            case 'M' -> stack.add((long) Short.toUnsignedInt(pickle.getShort()));
            case 'J' -> stack.add((long) pickle.getInt());
            case 0x8A -> stack.add(longNumber(Byte.toUnsignedInt(pickle.get())));
            case 'X', 'T' -> stack.add(text(pickle.getInt()));
            case 'U' -> stack.add(text(Byte.toUnsignedInt(pickle.get())));
            case 'c' -> stack.add(new Global(line() + "." + line()));
            case 'q' -> memo.put(Byte.toUnsignedInt(pickle.get()), stack.getLast());
            case 'r' -> memo.put(memoIndex(), stack.getLast());
            case 'h' -> stack.add(memo.getOrDefault(Byte.toUnsignedInt(pickle.get()), OTHER));
            case 'j' -> stack.add(memo.getOrDefault(pickle.getInt(), OTHER));
            case 't' -> stack.add(Tuple.of(sinceMark()));
            case 0x85 -> stack.add(Tuple.of(last(1)));
            case 0x86 -> stack.add(Tuple.of(last(2)));
            case 0x87 -> stack.add(Tuple.of(last(3)));
            case 'e', 'u' -> sinceMark();
            case 'a', 'b' -> last(1);
            case 's' -> last(2);
            case 0x81 -> {
                last(2);
                stack.add(OTHER);
            }
            case 'R' -> {
                List<Object> call = last(2);
                stack.add(OTHER);
                reduce(call.getFirst(), call.getLast());
            }
            case 'Q' -> stack.add(persistent(stack.removeLast()));
            default -> {
                return false; // also its end
            }
        }
        return true;
    }

    /** Reads where a value is kept: PyTorch allocates memory up to there. */
    private int memoIndex() throws TorchFileException {
        int index = pickle.getInt();
        if (index < 0 || index > pickle.limit()) {
            throw new TorchFileException("damaged: a pickle of " + pickle.limit() + " bytes keeps value "
                    + Integer.toUnsignedString(index) + " (expected: at most one for each byte)");
        }
        return index;
    }

    private Object text(int length) {
        if (length < 0 || length > pickle.remaining()) {
            throw new BufferUnderflowException();
        }
        if (length > MAX_TEXT_BYTES) {
            pickle.position(pickle.position() + length);
            return OTHER;
        }
        byte[] bytes = new byte[length];
        pickle.get(bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }

    private String line() {
        int begin = pickle.position();
        while (pickle.get() != '\n') {
            // to its end
        }
        int length = Math.min(pickle.position() - begin - 1, MAX_TEXT_BYTES); // longer than all names of interest
        return new String(pickle.array(), begin, length, StandardCharsets.UTF_8);
    }

    private Object longNumber(int length) {
        if (length > Long.BYTES) {
            pickle.position(Math.min(pickle.limit(), pickle.position() + length));
            return OTHER;
        }
        long number = 0;
        for (int i = 0; i < length; i++) {
            long digits = i == length - 1 ? pickle.get() : Byte.toUnsignedInt(pickle.get());
            number |= digits << (Byte.SIZE * i);
        }
        return number;
    }

    private List<Object> sinceMark() {
        int mark = stack.lastIndexOf(MARK);
        List<Object> elements = last(stack.size() - mark - 1);
        stack.remove(mark);
        return elements;
    }

    private List<Object> last(int count) {
        List<Object> above = stack.subList(stack.size() - count, stack.size());
        List<Object> copy = new ArrayList<>(above);
        above.clear();
        return copy;
    }

    /** Returns a storage: {@code ("storage", class, key, device, elements)}. */
    private Object persistent(Object id) throws TorchFileException {
        if (id instanceof Tuple(List<Object> parts, boolean _)
                && parts.size() >= STORAGE_PARTS
                && parts.get(1) instanceof Global type
                && parts.get(2) instanceof String key
                && parts.get(STORAGE_PARTS - 1) instanceof Long elements) {
            if (elements == 0) {
                return new Storage(prefix + key, 0); // PyTorch does not open the record
            }
            Integer size = ELEMENT_BYTES.get(type.name());
            Long bytes = recordBytes.get(prefix + key);
            if (size == null || bytes == null) {
                return OTHER;
            }
            if (elements < 0 || elements > bytes / size) {
                throw new TorchFileException(
                        "damaged: record '" + TorchFileException.shortened(prefix + key) + "' has " + bytes
                                + " bytes (expected: " + elements + " elements of " + size
                                + " bytes, as the module says)");
            }
            return new Storage(prefix + key, elements);
        }
        return OTHER;
    }

    /** Checks a tensor: {@code (storage, offset, sizes, strides, …)}. */
    private void reduce(Object function, Object arguments) throws TorchFileException {
        if (function instanceof Global rebuild
                && rebuild.name().startsWith("torch._utils._rebuild_")
                && arguments instanceof Tuple(List<Object> parts, boolean _)
                && parts.size() >= TENSOR_PARTS
                && parts.get(0) instanceof Storage storage
                && parts.get(1) instanceof Long offset
                && parts.get(2) instanceof Tuple(List<Object> sizes, boolean _)
                && parts.get(TENSOR_PARTS - 1) instanceof Tuple(List<Object> strides, boolean _)
                && sizes.size() == strides.size()) {
            if (sizes.size() > MAX_DIMENSIONS) {
                throw new TorchFileException("damaged: a tensor of " + sizes.size() + " dimensions (expected: at most "
                        + MAX_DIMENSIONS + ")");
            }
            if (areNumbers(sizes)
                    && areNumbers(strides)
                    && !isWithin(storage.elements(), offset, numbers(sizes), numbers(strides))) {
                throw new TorchFileException("damaged: a tensor " + shown(sizes) + " with strides " + shown(strides)
                        + " from " + offset + " (expected: within the " + storage.elements()
                        + " elements of record '" + TorchFileException.shortened(storage.key()) + "')");
            }
        }
    }

    /** Returns whether all of them are numbers; PyTorch refuses others. */
    private static boolean areNumbers(List<Object> elements) {
        return elements.stream().allMatch(Long.class::isInstance);
    }

    private static long[] numbers(List<Object> elements) {
        return elements.stream().mapToLong(element -> (Long) element).toArray();
    }

    private static String shown(List<Object> numbers) {
        return numbers.stream()
                .limit(MAX_SHOWN_NUMBERS)
                .map(String::valueOf)
                .collect(Collectors.joining(", ", "[", numbers.size() > MAX_SHOWN_NUMBERS ? ", …]" : "]"));
    }

    private static boolean isWithin(long elements, long offset, long[] sizes, long[] strides) {
        long last = Math.min(elements, offset); // beyond the end is enough, and does not overflow
        boolean isEmpty = false;
        for (int i = 0; i < sizes.length; i++) {
            long size = sizes[i];
            long stride = strides[i];
            if (size < 0 || stride < 0) {
                return false;
            }
            isEmpty |= size == 0;
            boolean overflows = size > 1 && stride > elements / (size - 1);
            last = overflows ? elements : Math.min(elements, last + Math.max(0, size - 1) * stride);
        }
        return offset >= 0 && (isEmpty || last < elements);
    }
}
