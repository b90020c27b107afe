package dev.nereid.testkit.serving;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.ValueLayout;

/** The backend {@code summing}: OUTPUT is the sum of all INPUT of a sequence, which the server keeps. Immutable. */
final class SummingBackend implements BackendProvider {
    private static final Shape ONE = Shape.of(1, 1);

    /** Returns the configuration of a model. */
    static String model(String batching) {
        return """
                backend: "summing"
                max_batch_size: 8
                input { name: "INPUT" data_type: TYPE_INT32 dims: [ 1 ] }
                output { name: "OUTPUT" data_type: TYPE_INT32 dims: [ 1 ] }
                instance_group { count: 2 kind: KIND_CPU }
                sequence_batching {
                  state { input_name: "SUM_IN" output_name: "SUM_OUT" data_type: TYPE_INT32 dims: [ 1 ]
                    initial_state { name: "zero" data_type: TYPE_INT32 dims: [ 1 ] zero_data: true } }
                  %s
                }
                """.formatted(batching);
    }

    @Override
    public String name() {
        return "summing";
    }

    @Override
    public Backend create(BackendContext context) {
        return _ -> _ -> SummingBackend::execute;
    }

    private static void execute(Batch batch) {
        for (InferenceRequest request : batch.requests()) {
            if (!request.isNullRequest()) {
                int sum = first(request.requireInput("INPUT")) + first(request.requireInput("SUM_IN"));
                write(request.state("SUM_OUT").allocate(DataType.INT32, ONE), sum);
                write(request.response().allocate("OUTPUT", DataType.INT32, ONE), sum);
            }
        }
    }

    private static int first(Tensor tensor) {
        return tensor.data().get(ValueLayout.JAVA_INT_UNALIGNED, 0);
    }

    private static void write(Tensor tensor, int number) {
        tensor.data().set(ValueLayout.JAVA_INT_UNALIGNED, 0, number);
    }
}
