package dev.nereid.examples.vision;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/**
 * Turns scores into JSON with labels. Stateless.
 *
 * <p>A model has one input of {@code TYPE_FP32}, {@code [ n ]}, one output of {@code TYPE_STRING}, {@code [ 1 ]}, and the
 * labels in its {@code labels.txt}. The parameter {@code top} is the number of scores that are listed, 3 by default.
 */
public final class Postprocess implements BackendProvider {
    private static final int TOP = 3;
    private static final ValueLayout.OfFloat FLOAT =
            ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    /** For {@code ServiceLoader}. */
    public Postprocess() {}

    @Override
    public String name() {
        return "postprocess";
    }

    @Override
    public Backend create(BackendContext context) {
        return model -> {
            Labeling labeling = Labeling.of(model);
            return instance -> batch -> batch.requests().forEach(labeling::execute);
        };
    }

    /**
     * The work of one model. Immutable.
     *
     * @param batches whether tensors have a batch dimension
     * @param top how many scores are listed
     */
    private record Labeling(String input, String output, boolean batches, Labels labels, int top) {
        static Labeling of(ModelContext model) {
            ModelSettings settings = model.settings();
            TensorSpec input = Settings.only("input", settings.inputs(), DataType.FP32);
            TensorSpec output = Settings.only("output", settings.outputs(), DataType.BYTES);
            if (input.dims().rank() != 1) {
                throw Settings.invalid("input dims", input.dims().toString(), "[n]");
            }
            if (!output.dims().equals(Shape.of(1))) {
                throw Settings.invalid("output dims", output.dims().toString(), "[1]");
            }
            int top = Settings.positive(model, "top", TOP);
            return new Labeling(input.name(), output.name(), settings.batches(), Labels.read(model), top);
        }

        void execute(InferenceRequest request) {
            try {
                Tensor scores = request.requireInput(input);
                Shape shape = scores.shape();
                int items = batches ? Math.toIntExact(shape.dim(0)) : 1;
                int length = Math.toIntExact(shape.dim(shape.rank() - 1));
                if (length == 0) {
                    throw new BackendException(
                            ErrorCode.INVALID_ARGUMENT, input + ": no scores (expected: at least one)");
                }
                List<String> texts = new ArrayList<>(items);
                for (int i = 0; i < items; i++) {
                    texts.add(Ranking.of(row(scores, i, length), labels, top).json());
                }
                Shape item = Shape.of(1);
                request.response().put(output, Tensor.ofStrings(batches ? item.prepend(items) : item, texts));
            } catch (BackendException e) {
                request.fail(e);
            }
        }

        private float[] row(Tensor scores, int item, int length) {
            float[] row = new float[length];
            for (int i = 0; i < length; i++) {
                row[i] = scores.data().get(FLOAT, ((long) item * length + i) * Float.BYTES);
                if (!Float.isFinite(row[i])) {
                    throw new BackendException(
                            ErrorCode.INVALID_ARGUMENT,
                            input + ": " + row[i] + " at " + i + " (expected: finite numbers)");
                }
            }
            return row;
        }
    }
}
