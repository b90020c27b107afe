package dev.nereid.scheduler.sequence;

import dev.nereid.scheduler.FakeInstance;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Adds up {@code IN} for each row of the batch, from START on. Records the control inputs of each batch. */
final class Accumulator implements FakeInstance.Execution {
    private final Map<Integer, Float> sums = new HashMap<>();
    private final List<String> batches = new ArrayList<>();

    @Override
    public void execute(Batch batch) {
        Tensor start = batch.gather("START");
        Tensor end = batch.gather("END");
        Tensor ready = batch.gather("READY");
        Tensor id = batch.gather("CORRID");
        batches.add(IntStream.range(0, batch.size())
                .mapToObj(row -> (ready.data().getAtIndex(ValueLayout.JAVA_FLOAT, row) == 0 ? "-" : "R")
                        + (start.data().getAtIndex(ValueLayout.JAVA_INT, row) == 0 ? "" : "S")
                        + (end.data().get(ValueLayout.JAVA_BYTE, row) == 0 ? "" : "E")
                        + id.data().getAtIndex(ValueLayout.JAVA_LONG, row))
                .collect(Collectors.joining(" ")));
        for (int row = 0; row < batch.size(); row++) {
            InferenceRequest request = batch.requests().get(row);
            boolean isReady = ready.data().getAtIndex(ValueLayout.JAVA_FLOAT, row) != 0;
            if (isReady == request.isNullRequest()) {
                throw new AssertionError("READY of row " + row + " is " + isReady);
            }
            if (isReady) {
                add(request, row, start.data().getAtIndex(ValueLayout.JAVA_INT, row) != 0);
            }
        }
    }

    private void add(InferenceRequest request, int row, boolean start) {
        float value = request.requireInput("IN").data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0);
        float sum = start ? value : sums.getOrDefault(row, Float.NaN) + value;
        sums.put(row, sum);
        Shape shape = request.requireInput("IN").shape().withFirst(1);
        request.response().allocate("OUT", DataType.FP32, shape).data().set(ValueLayout.JAVA_FLOAT_UNALIGNED, 0, sum);
    }

    /** Returns and forgets the control inputs of each batch: R or - for READY, S, E, and the id of each row. */
    List<String> batches() {
        List<String> seen = List.copyOf(batches);
        batches.clear();
        return seen;
    }
}
