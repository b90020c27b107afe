package dev.nereid.server.classification;

import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.RequestedOutput;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;

/** Replaces outputs by their classes, for requests with a classification count. Immutable. */
public final class Classifier {
    private static final ValueLayout.OfInt LENGTH = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    /** The maximum of elements of an item, and of classes of an output. */
    private static final long MAX_ELEMENTS = 1_000_000;

    private final ModelSettings model;
    private final Map<String, List<String>> labels;
    private final TensorMemory memory;

    /**
     * Prepares classification for a model.
     *
     * @param model the model's configuration
     * @param labels the labels of outputs that have some
     * @param memory where the classes are written
     */
    public Classifier(ModelSettings model, Map<String, List<String>> labels, TensorMemory memory) {
        this.model = model;
        this.labels = Map.copyOf(labels);
        this.memory = memory;
    }

    /**
     * Checks that the requested classes can be computed.
     *
     * @param outputs the outputs of the request, which the model has
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} if the type of an output has no classes
     */
    public void check(List<RequestedOutput> outputs) {
        for (int i = 0; i < outputs.size(); i++) {
            if (outputs.get(i).classes() > 0) {
                scores(model.output(outputs.get(i).name()).orElseThrow().type());
            }
        }
    }

    /** Returns the labels of an output in the order of its elements; empty if it has none. */
    public List<String> labels(String output) {
        return labels.getOrDefault(output, List.of());
    }

    /**
     * Finds the classes of an output.
     *
     * @return byte strings in memory that belongs to the caller
     * @throws InferenceException if there are too many elements, or no memory
     */
    Classes classify(NamedTensor output, long count) {
        Tensor tensor = output.tensor();
        Scores scores = scores(tensor.type());
        Shape shape = tensor.shape();
        boolean batched = model.batches() && shape.rank() > 0; // an output may have another rank than configured
        long items = batched ? shape.dim(0) : 1;
        long perItem = (batched ? shape.dropFirst() : shape).elementCount();
        long classesPerItem = Math.min(count, perItem);
        if (perItem > MAX_ELEMENTS || items * classesPerItem > MAX_ELEMENTS) { // items fit 32 bits, classes 20
            throw new InferenceException(ErrorCode.INVALID_ARGUMENT, "classification output tensor too large");
        }
        if (!tensor.place().isHost()) {
            throw new InferenceException(
                    ErrorCode.INTERNAL, "output '" + output.name() + "' lies in " + tensor.place());
        }
        int classes = (int) classesPerItem;
        byte[][] texts = new byte[(int) items * classes][];
        long itemSize = perItem * tensor.type().byteSize();
        List<String> names = labels.getOrDefault(output.name(), List.of());
        for (int item = 0; item < items; item++) {
            MemorySegment data = tensor.data().asSlice(item * itemSize, itemSize);
            int[] largest = LargestElements.find(scores, data, (int) perItem, classes);
            for (int i = 0; i < classes; i++) {
                texts[item * classes + i] = text(scores.text(data, largest[i]), largest[i], names);
            }
        }
        return write(texts, batched ? Shape.of(items, classes) : Shape.of(classes));
    }

    /**
     * The classes of an output.
     *
     * @param tensor the byte strings
     * @param memory the memory of the byte strings
     */
    record Classes(Tensor tensor, TensorBuffer memory) {}

    private static Scores scores(DataType type) {
        return Scores.of(type)
                .orElseThrow(() -> new InferenceException(
                        ErrorCode.INVALID_ARGUMENT,
                        "class result not available for output due to unsupported type '" + type + "'"));
    }

    private static byte[] text(String value, int index, List<String> names) {
        String label = index < names.size() ? names.get(index) : "";
        return (value + ":" + index + (label.isEmpty() ? "" : ":" + label)).getBytes(StandardCharsets.UTF_8);
    }

    private Classes write(byte[][] texts, Shape shape) {
        long size = 0;
        for (byte[] text : texts) {
            size += Integer.BYTES + text.length;
        }
        TensorBuffer buffer = memory.allocate(size);
        long at = 0;
        for (byte[] text : texts) {
            buffer.segment().set(LENGTH, at, text.length);
            MemorySegment.copy(text, 0, buffer.segment(), ValueLayout.JAVA_BYTE, at + Integer.BYTES, text.length);
            at += Integer.BYTES + text.length;
        }
        return new Classes(Tensor.of(DataType.BYTES, shape, buffer.segment()), buffer);
    }

    /**
     * Finds the largest elements of an array. Confined to one search.
     *
     * <p>A heap of the largest elements so far, the smallest of them at the root, so that an array is read once whatever
     * its size.
     */
    static final class LargestElements {
        private final Scores scores;
        private final MemorySegment data;
        private final int[] heap;
        private int size;

        private LargestElements(Scores scores, MemorySegment data, int limit) {
            this.scores = scores;
            this.data = data;
            this.heap = new int[limit];
        }

        /**
         * Finds the largest elements.
         *
         * @param count the number of elements of the array
         * @param limit the number of elements to find, at most {@code count}
         * @return their indices, the largest element first, of equal ones the first
         */
        static int[] find(Scores scores, MemorySegment data, int count, int limit) {
            LargestElements largest = new LargestElements(scores, data, limit);
            for (int index = 0; index < count && limit > 0; index++) {
                largest.offer(index);
            }
            return largest.descending();
        }

        private void offer(int index) {
            if (size < heap.length) {
                heap[size] = index;
                rise(size);
                size++;
            } else if (isLess(heap[0], index)) {
                heap[0] = index;
                sink();
            }
        }

        /** Removes the smallest element again and again, which empties the heap. */
        private int[] descending() {
            int[] found = new int[size];
            while (size > 0) {
                size--;
                found[size] = heap[0];
                heap[0] = heap[size];
                sink();
            }
            return found;
        }

        private void rise(int from) {
            int at = from;
            while (at > 0 && isLess(heap[at], heap[(at - 1) / 2])) {
                swap(at, (at - 1) / 2);
                at = (at - 1) / 2;
            }
        }

        private void sink() {
            int at = 0;
            while (true) {
                int smallest = at;
                for (int child = 2 * at + 1; child <= 2 * at + 2 && child < size; child++) {
                    if (isLess(heap[child], heap[smallest])) {
                        smallest = child;
                    }
                }
                if (smallest == at) {
                    return;
                }
                swap(at, smallest);
                at = smallest;
            }
        }

        private void swap(int first, int second) {
            int kept = heap[first];
            heap[first] = heap[second];
            heap[second] = kept;
        }

        private boolean isLess(int first, int second) {
            int order = Long.compare(scores.rank(data, first), scores.rank(data, second));
            return order == 0 ? first > second : order < 0;
        }
    }
}
