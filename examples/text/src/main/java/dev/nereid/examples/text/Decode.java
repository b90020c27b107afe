package dev.nereid.examples.text;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.DataType;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/**
 * Turns the probabilities of symbols into texts. Stateless.
 *
 * <p>A model has one input of {@code TYPE_FP32}, {@code [ length, symbols ]}, and the file {@code symbols.txt}, one symbol a
 * line. Its output of {@code TYPE_STRING}, {@code [ 1 ]}, is the text of the likeliest symbols; the one of
 * {@code TYPE_FP32}, {@code [ 1 ]}, is the product of their probabilities.
 */
public final class Decode implements BackendProvider {
    private static final String SYMBOLS = "symbols.txt";
    private static final ValueLayout.OfFloat FLOAT =
            ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    /** For {@code ServiceLoader}. */
    public Decode() {}

    @Override
    public String name() {
        return "decode";
    }

    @Override
    public Backend create(BackendContext context) {
        return model -> {
            Decoder decoder = Decoder.of(model);
            return instance -> batch -> batch.requests().forEach(decoder::execute);
        };
    }

    /**
     * The work of one model. Immutable.
     *
     * @param text the name of the output for texts
     * @param confidence the name of the output for probabilities
     * @param batches whether tensors have a batch dimension
     */
    private record Decoder(TensorSpec input, String text, String confidence, boolean batches, List<String> symbols) {
        static Decoder of(ModelContext model) {
            TensorSpec input = Characters.only("input", model.settings().inputs(), DataType.FP32);
            TensorSpec text = Characters.only("output", model.settings().outputs(), DataType.BYTES);
            TensorSpec confidence = Characters.only("output", model.settings().outputs(), DataType.FP32);
            List<String> symbols = Characters.read(model, SYMBOLS);
            Shape dims = input.dims();
            if (dims.rank() != 2 || !dims.isConcrete() || dims.dim(1) != symbols.size()) {
                throw Characters.invalid(
                        "input dims", dims.toString(), "[length," + symbols.size() + "], the lines of " + SYMBOLS);
            }
            return new Decoder(
                    input, text.name(), confidence.name(), model.settings().batches(), symbols);
        }

        void execute(InferenceRequest request) {
            try {
                Tensor probabilities = request.requireInput(input.name());
                int items = batches ? Math.toIntExact(probabilities.shape().dim(0)) : 1;
                Shape shape = batches ? Shape.of(items, 1) : Shape.of(1);
                Tensor products = request.response().allocate(confidence, DataType.FP32, shape);
                List<String> texts = new ArrayList<>(items);
                for (int i = 0; i < items; i++) {
                    StringBuilder decoded = new StringBuilder();
                    products.data().set(FLOAT, (long) i * Float.BYTES, decode(probabilities, i, decoded));
                    texts.add(decoded.toString());
                }
                request.response().put(text, Tensor.ofStrings(shape, texts));
            } catch (BackendException e) {
                request.fail(e);
            }
        }

        /** Appends the likeliest symbols of an item, and returns the product of their probabilities. */
        private float decode(Tensor probabilities, int item, StringBuilder decoded) {
            long length = input.dims().dim(0);
            float product = 1;
            for (long place = 0; place < length; place++) {
                long row = (item * length + place) * symbols.size();
                int best = 0;
                for (int i = 1; i < symbols.size(); i++) {
                    if (at(probabilities, row + i) > at(probabilities, row + best)) {
                        best = i;
                    }
                }
                decoded.append(symbols.get(best));
                product *= at(probabilities, row + best);
            }
            return product;
        }

        private static float at(Tensor tensor, long index) {
            return tensor.data().get(FLOAT, index * Float.BYTES);
        }
    }
}
