package dev.nereid.http.json;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.http.body.RequestMemory;
import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.function.Consumer;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;

/** Arrays of numbers are read correctly in any notation and across any window boundary. */
class JsonTensorReaderProperties {
    private static final String[] BLANKS = {"", "", "", "", " ", "  ", "\n", "\r\n\t", " ".repeat(70), " ".repeat(9000)
    };

    @Property(tries = 100)
    void readsFloatsInAnyNotation(@ForAll Random random) {
        List<String> numbers = new ArrayList<>();
        for (int i = 1 + random.nextInt(3000); i > 0; i--) {
            numbers.add(number(random));
        }

        readAll(random, "FP32", numbers, data -> {
            float[] read = data.toArray(ValueLayout.JAVA_FLOAT_UNALIGNED);
            for (int i = 0; i < read.length; i++) {
                String text = numbers.get(i);
                float expected = text.equals("-0") ? 0 : Float.parseFloat(text.equals("Inf") ? "Infinity" : text);
                assertThat(Float.valueOf(read[i])).as(text).isEqualTo(Float.valueOf(expected));
            }
        });
    }

    @Property(tries = 100)
    void readsIntegersOfAnyLength(@ForAll Random random) {
        List<String> numbers = new ArrayList<>();
        for (int i = 1 + random.nextInt(3000); i > 0; i--) {
            numbers.add(Long.toString(random.nextLong() >> random.nextInt(64)));
        }

        readAll(random, "INT64", numbers, data -> {
            long[] read = data.toArray(ValueLayout.JAVA_LONG_UNALIGNED);
            for (int i = 0; i < read.length; i++) {
                assertThat(read[i]).hasToString(numbers.get(i));
            }
        });
    }

    @Property(tries = 100)
    void reportsTheNumberThatDoesNotFit(@ForAll Random random) {
        List<String> numbers = new ArrayList<>();
        int count = 1 + random.nextInt(3000);
        for (int i = 0; i < count; i++) {
            numbers.add(Integer.toString(random.nextInt(256) - 128));
        }
        int wrong = random.nextInt(count);
        numbers.set(wrong, "128");

        assertThatThrownBy(() -> readAll(random, "INT8", numbers, data -> {}))
                .isInstanceOf(InferenceException.class)
                .hasMessage(
                        "input 'X': value 128 at index " + wrong + " is out of range for INT8 (expected: -128 to 127)");
    }

    @Property(tries = 100)
    void findsAnErrorAtAnyIndex(@ForAll Random random) {
        StringBuilder text = new StringBuilder("[");
        for (int i = random.nextInt(3000); i > 0; i--) {
            text.append(number(random)).append(',').append(BLANKS[random.nextInt(BLANKS.length)]);
        }
        int at = text.length();
        text.append(",1]");

        assertThatThrownBy(() -> {
                    JsonReader json = reader(text.toString());
                    json.begin();
                    json.skipValue();
                })
                .hasMessageStartingWith("failed to parse the request JSON buffer: Invalid value. at " + at + "; ");
    }

    @Example
    void countsElementsPastTheShape() {
        for (int length : new int[] {1, 2, 3, 5, 2000}) {
            String text = "[" + "1,".repeat(length - 1) + "1]";
            assertThatThrownBy(() -> read(text, "FP32", length - 1L + (length == 1 ? 2 : 0), data -> {}))
                    .hasMessageContaining("true shape");
            assertThatThrownBy(() -> read(text, "FP32", length + 1L, data -> {}))
                    .hasMessage("Failed to parse 'data' field: shape does not match true shape");
        }
    }

    private static String number(Random random) {
        return switch (random.nextInt(12)) {
            case 0 -> Integer.toString(random.nextInt());
            case 1 -> Long.toString(random.nextLong());
            case 2 -> Double.toString(random.nextGaussian());
            case 3 -> Double.toString(Double.longBitsToDouble(random.nextLong() & ~(1L << 62)));
            case 4 -> random.nextInt(1000) + "." + "0".repeat(random.nextInt(80)) + random.nextInt(1000);
            case 5 -> random.nextLong(1L << 62) + "" + random.nextLong(1L << 62);
            case 6 -> random.nextInt(100) + "e" + (random.nextInt(300) - 150);
            case 7 -> random.nextBoolean() ? "NaN" : random.nextBoolean() ? "Inf" : "-Infinity";
            case 8 -> random.nextBoolean() ? "-0" : "-0.0";
            default -> Float.toString(random.nextFloat());
        };
    }

    private static void readAll(Random random, String type, List<String> numbers, Consumer<MemorySegment> check) {
        StringBuilder text = new StringBuilder("[");
        int nested = random.nextInt(numbers.size());
        for (int i = 0; i < numbers.size(); i++) {
            text.append(i == 0 ? "" : ",").append(BLANKS[random.nextInt(BLANKS.length)]);
            text.append(i == nested ? "[[" : "").append(numbers.get(i)).append(i == nested ? "], []]" : "");
        }
        read(text.append(BLANKS[random.nextInt(BLANKS.length)]).append(']').toString(), type, numbers.size(), check);
    }

    private static void read(String text, String type, long expected, Consumer<MemorySegment> check) {
        try (LeakCheckingMemory memory = new LeakCheckingMemory()) {
            RequestMemory allocated = new RequestMemory(memory, new FakeInferenceServer(memory).sharedMemory());
            try {
                JsonReader json = reader(text);
                json.begin();
                json.skipValue();
                json.finish();
                InputMetadata input = new InputMetadata("X", type, new long[] {expected});
                check.accept(new JsonTensorReader(1 << 20).read(json, 0, input, allocated));
            } finally {
                allocated.run();
            }
        }
    }

    private static JsonReader reader(String text) {
        return new JsonReader(MemorySegment.ofArray(text.getBytes(StandardCharsets.US_ASCII)));
    }
}
