package dev.nereid.benchmarks.micro;

import dev.nereid.api.NamedTensor;
import dev.nereid.http.body.RequestMemory;
import dev.nereid.http.json.InputMetadata;
import dev.nereid.http.json.JsonReader;
import dev.nereid.http.json.JsonTensorReader;
import dev.nereid.http.json.JsonTensorWriter;
import dev.nereid.http.json.JsonWriter;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.Random;
import java.util.StringJoiner;

/** Reads and writes one tensor as JSON, for benchmarks. Confined to the thread that measures. */
public final class JsonCodec implements AutoCloseable {
    private static final int MAX_BYTE = 255;

    /** Value distributions of the tensor. */
    public enum Values {
        /** Floats between zero and one, with all their digits. */
        UNIFORM("0 to 1"),
        /** Floats about zero, with all their digits. */
        NORMAL("about 0"),
        /** Numbers with two digits after the point. */
        SHORT("two decimals"),
        /** Whole numbers of one byte. */
        WHOLE("0 to 255");

        private final String text;

        Values(String text) {
            this.text = text;
        }

        public String text() {
            return text;
        }

        private float draw(Random random) {
            return switch (this) {
                case UNIFORM -> random.nextFloat();
                case NORMAL -> (float) random.nextGaussian();
                case SHORT -> Float.parseFloat(String.format(Locale.ROOT, "%.2f", 100 * random.nextGaussian()));
                case WHOLE -> random.nextInt(MAX_BYTE + 1);
            };
        }
    }

    private final Arena arena = Arena.ofShared();
    private final LeakCheckingMemory memory = new LeakCheckingMemory();
    private final RequestMemory requestMemory;
    private final MemorySegment text;
    private final InputMetadata metadata;
    private final NamedTensor output;
    private final JsonWriter writer = new JsonWriter();

    /** Draws a tensor of {@code count} elements. */
    public JsonCodec(Values values, int count) {
        requestMemory = new RequestMemory(memory, new FakeInferenceServer(memory).sharedMemory());
        metadata = new InputMetadata("INPUT0", "FP32", new long[] {1, count});
        Random random = new Random(count);
        MemorySegment data = arena.allocate(ValueLayout.JAVA_FLOAT, count);
        StringJoiner elements = new StringJoiner(
                ",",
                "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[1," + count + "],\"data\":[",
                "]}]}");
        for (int i = 0; i < count; i++) {
            float value = values.draw(random);
            data.setAtIndex(ValueLayout.JAVA_FLOAT, i, value);
            elements.add(values == Values.WHOLE ? Integer.toString((int) value) : Float.toString(value));
        }
        byte[] bytes = elements.toString().getBytes(StandardCharsets.US_ASCII);
        text = arena.allocate(bytes.length).copyFrom(MemorySegment.ofArray(bytes));
        output = new NamedTensor("OUTPUT0", Tensor.of(DataType.FP32, Shape.of(1, count), data));
    }

    /** Reads a request that holds the tensor; returns how many bytes were read. */
    public int read() {
        JsonReader json = new JsonReader(text);
        new JsonTensorReader(Integer.MAX_VALUE).read(json, findData(json), metadata, requestMemory);
        requestMemory.run();
        return (int) text.byteSize();
    }

    /** Finds the numbers in one pass over the whole text, as the front end does. */
    private static int findData(JsonReader json) {
        int data = 0;
        json.begin();
        json.firstMember(); // inputs
        json.firstElement();
        for (boolean more = json.firstMember(); more; more = json.nextMember()) {
            if (json.keyIs("data")) {
                data = json.position();
                json.skipNumbers();
            } else {
                json.skipValue();
            }
        }
        json.nextElement();
        json.nextMember();
        json.finish();
        return data;
    }

    /** Writes the tensor; returns how many bytes were written. */
    public int write() {
        writer.clear();
        JsonTensorWriter.write(writer, output);
        return writer.size();
    }

    @Override
    public void close() {
        memory.close();
        arena.close();
    }
}
