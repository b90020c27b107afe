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
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Turns texts into the numbers of their characters. Stateless.
 *
 * <p>A model has one input of {@code TYPE_STRING}, {@code [ 1 ]}, one output of {@code TYPE_INT64}, {@code [ length ]}, and
 * the file {@code alphabet.txt}: a character's number is its line, from 0. The first two lines are for the places behind
 * the end of a text and for characters that are not in the file. Upper case counts as lower case.
 */
public final class Tokenize implements BackendProvider {
    private static final String ALPHABET = "alphabet.txt";
    private static final long OTHER = 1;
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    /** For {@code ServiceLoader}. */
    public Tokenize() {}

    @Override
    public String name() {
        return "tokenize";
    }

    @Override
    public Backend create(BackendContext context) {
        return model -> {
            Tokenizer tokenizer = Tokenizer.of(model);
            return instance -> batch -> batch.requests().forEach(tokenizer::execute);
        };
    }

    /**
     * The work of one model. Immutable.
     *
     * @param batches whether tensors have a batch dimension
     * @param numbers the numbers of the characters
     */
    private record Tokenizer(String input, String output, int length, boolean batches, Map<Integer, Long> numbers) {
        static Tokenizer of(ModelContext model) {
            TensorSpec input = Characters.only("input", model.settings().inputs(), DataType.BYTES);
            TensorSpec output = Characters.only("output", model.settings().outputs(), DataType.INT64);
            Shape dims = output.dims();
            if (dims.rank() != 1 || dims.dim(0) < 1 || dims.dim(0) > Short.MAX_VALUE) {
                throw Characters.invalid("output dims", dims.toString(), "[length]");
            }
            List<String> lines = Characters.read(model, ALPHABET);
            Map<Integer, Long> numbers = new HashMap<>();
            for (int i = (int) OTHER + 1; i < lines.size(); i++) {
                if (lines.get(i).codePointCount(0, lines.get(i).length()) != 1) {
                    throw Characters.invalid(ALPHABET, "line " + (i + 1) + ": '" + lines.get(i) + "'", "one character");
                }
                numbers.put(lines.get(i).codePointAt(0), (long) i);
            }
            return new Tokenizer(
                    input.name(),
                    output.name(),
                    (int) dims.dim(0),
                    model.settings().batches(),
                    Map.copyOf(numbers));
        }

        void execute(InferenceRequest request) {
            try {
                Tensor tensor = request.requireInput(input);
                // A request may be larger than the heap. In UTF-8 a character has four bytes at most.
                long most = tensor.shape().elementCount() * (Integer.BYTES + 4L * length);
                if (tensor.data().byteSize() > most) {
                    throw Characters.invalid(
                            input, tensor.data().byteSize() + " bytes", "1 to " + length + " characters in each text");
                }
                List<String> texts = tensor.strings();
                Shape item = Shape.of(length);
                Tensor tokens = request.response()
                        .allocate(output, DataType.INT64, batches ? item.prepend(texts.size()) : item);
                for (int i = 0; i < texts.size(); i++) {
                    write(texts.get(i), tokens.data().asSlice(i * byteSize(), byteSize()));
                }
            } catch (BackendException e) {
                request.fail(e);
            }
        }

        private long byteSize() {
            return (long) length * Long.BYTES;
        }

        private void write(String text, MemorySegment target) {
            int[] characters = text.toLowerCase(Locale.ROOT).codePoints().toArray();
            if (characters.length == 0 || characters.length > length) {
                throw Characters.invalid(input, characters.length + " characters", "1 to " + length);
            }
            target.fill((byte) 0);
            for (int i = 0; i < characters.length; i++) {
                target.set(LONG, (long) i * Long.BYTES, numbers.getOrDefault(characters[i], OTHER));
            }
        }
    }
}
