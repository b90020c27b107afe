package dev.nereid.examples.sequence;

import dev.nereid.spi.DataType;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.Tensor;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.HashMap;
import java.util.Map;

/** A sum for each key: all elements of all inputs. Confined to the instance. */
final class Sums<K> {
    static final String INPUT = "INPUT";
    static final String OUTPUT = "OUTPUT";

    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private final Map<K, Integer> sums = new HashMap<>();

    /**
     * Adds the elements of a request's input to a sum, and responds with the sum in each element of the output.
     *
     * @param starts whether the sum begins at 0
     * @param bonus a number to add besides the elements
     */
    void add(InferenceRequest request, K key, boolean starts, int bonus) {
        Tensor input = request.requireInput(INPUT);
        int sum = starts ? bonus : sums.getOrDefault(key, 0) + bonus;
        long count = input.shape().elementCount();
        for (long i = 0; i < count; i++) {
            sum += input.data().getAtIndex(INT, i);
        }
        Tensor output = request.response().allocate(OUTPUT, DataType.INT32, input.shape());
        for (long i = 0; i < count; i++) {
            output.data().setAtIndex(INT, i, sum);
        }
        sums.put(key, sum);
    }

    void remove(K key) {
        sums.remove(key);
    }
}
