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

/**
 * Compares the tensors that a pickle describes with the records that have their elements: PyTorch does not, and would read
 * beyond them. Nothing of the pickle is run. Confined to one pickle.
 *
 * <p>It follows the operations that PyTorch writes, and ends at another one, since PyTorch knows no more.
 */
final class PickledTensors {
    /** Larger pickles are those of vocabularies, and are left to PyTorch. */
    static final long MAX_BYTES = 8 << 20;

    private static final int MAX_TEXT = 64;
    private static final int STORAGE_PARTS = 5;
    private static final int TENSOR_PARTS = 4;

    private static final Map<String, Integer> ELEMENT_BYTES = Map.ofEntries(
            Map.entry("torch.BoolStorage", 1),
            Map.entry("torch.ByteStorage", 1),
            Map.entry("torch.CharStorage", 1),
            Map.entry("torch.ShortStorage", 2),
            Map.entry("torch.HalfStorage", 2),
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

    /**
     * Refuses a pickle with a tensor that is larger than its record.
     *
     * @param recordBytes the sizes of all records by name
     * @param prefix the beginning of the names of the pickle's records
     */
    static void check(byte[] pickle, Map<String, Long> recordBytes, String prefix) throws TorchFileException {
        PickledTensors tensors = new PickledTensors(pickle, recordBytes, prefix);
        try {
            boolean goesOn = true;
            while (goesOn) {
                goesOn = tensors.step();
            }
        } catch (BufferUnderflowException | IndexOutOfBoundsException | NoSuchElementException e) {
            return; // PyTorch says what is wrong with it
        }
    }

    /** Follows one operation; returns whether there are more. */
    private boolean step() throws TorchFileException {
        switch (Byte.toUnsignedInt(pickle.get())) {
            case 0x80 -> pickle.get(); // version
            case '(' -> stack.add(MARK);
            case ')' -> stack.add(List.of());
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
            case 'r' -> memo.put(pickle.getInt(), stack.getLast());
            case 'h' -> stack.add(memo.getOrDefault(Byte.toUnsignedInt(pickle.get()), OTHER));
            case 'j' -> stack.add(memo.getOrDefault(pickle.getInt(), OTHER));
            case 't' -> stack.add(sinceMark());
            case 0x85 -> stack.add(last(1));
            case 0x86 -> stack.add(last(2));
            case 0x87 -> stack.add(last(3));
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

    private Object text(int length) {
        if (length < 0 || length > pickle.remaining()) {
            throw new BufferUnderflowException();
        }
        if (length > MAX_TEXT) {
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
        return new String(pickle.array(), begin, pickle.position() - begin - 1, StandardCharsets.UTF_8);
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
        List<Object> above = stack.subList(mark + 1, stack.size());
        List<Object> copy = new ArrayList<>(above);
        stack.subList(mark, stack.size()).clear();
        return copy;
    }

    private List<Object> last(int count) {
        List<Object> above = stack.subList(stack.size() - count, stack.size());
        List<Object> copy = new ArrayList<>(above);
        above.clear();
        return copy;
    }

    /** Returns a storage: {@code ("storage", class, key, device, elements)}. */
    private Object persistent(Object id) throws TorchFileException {
        if (id instanceof List<?> parts
                && parts.size() >= STORAGE_PARTS
                && parts.get(1) instanceof Global type
                && parts.get(2) instanceof String key
                && parts.get(STORAGE_PARTS - 1) instanceof Long elements) {
            Integer size = ELEMENT_BYTES.get(type.name());
            Long bytes = recordBytes.get(prefix + key);
            if (size == null || bytes == null || elements == 0) {
                return OTHER;
            }
            if (elements < 0 || elements > bytes / size) {
                throw new TorchFileException("damaged: record '" + prefix + key + "' has " + bytes
                        + " bytes (expected: " + elements + " elements of " + size + " bytes, as the module says)");
            }
            return new Storage(prefix + key, elements);
        }
        return OTHER;
    }

    /** Checks a tensor: {@code (storage, offset, sizes, strides, …)}. */
    private void reduce(Object function, Object arguments) throws TorchFileException {
        if (function instanceof Global rebuild
                && rebuild.name().startsWith("torch._utils._rebuild_")
                && arguments instanceof List<?> parts
                && parts.size() >= TENSOR_PARTS
                && parts.get(0) instanceof Storage storage
                && parts.get(1) instanceof Long offset
                && parts.get(2) instanceof List<?> sizes
                && parts.get(TENSOR_PARTS - 1) instanceof List<?> strides
                && sizes.size() == strides.size()
                && !isWithin(storage.elements(), offset, sizes, strides)) {
            throw new TorchFileException("damaged: a tensor " + sizes + " with strides " + strides + " from " + offset
                    + " (expected: within the " + storage.elements() + " elements of record '" + storage.key() + "')");
        }
    }

    private static boolean isWithin(long elements, long offset, List<?> sizes, List<?> strides) {
        long last = offset;
        boolean isEmpty = false;
        for (int i = 0; i < sizes.size(); i++) {
            if (!(sizes.get(i) instanceof Long size && strides.get(i) instanceof Long stride)) {
                return true; // PyTorch refuses it
            }
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
