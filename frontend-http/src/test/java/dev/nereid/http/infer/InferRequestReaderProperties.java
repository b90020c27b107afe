package dev.nereid.http.infer;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferenceException;
import dev.nereid.http.body.RequestMemory;
import dev.nereid.http.json.JsonReader;
import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.Random;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;

/**
 * Checks that all errors in the numbers of a request are found. The expected errors are those of a reader that checks
 * the whole text first.
 */
class InferRequestReaderProperties {
    private static final String[] TYPES = {"FP32", "INT32", "UINT8", "BOOL", "BYTES", "FP64", "X"};
    private static final String[] SHAPES = {"", "0", "1", "2", "4", "6", "6", "6", "2,3"};
    private static final String[] WRONG = {
        ",",
        "[",
        "]",
        "{",
        "}",
        "\"",
        " ",
        "-",
        "+",
        ".",
        "e",
        "E",
        "0",
        "1e400",
        "true",
        "NaN",
        "y",
        "_",
        "\0",
        "\u007F",
        "\u00FF",
        "[]",
        "[ ]",
        "\"]\"",
        "{\"a\":[1]}",
        "],\"data\":[1",
        "1".repeat(30),
        " ".repeat(20),
        "\n",
        "null"
    };

    @Property(tries = 20_000)
    void findsSyntaxErrorsBeforeAllOthers(@ForAll Random random) {
        String type = TYPES[random.nextInt(TYPES.length)];
        String shape = SHAPES[random.nextInt(SHAPES.length)];
        StringBuilder text = new StringBuilder("{\"inputs\":[{\"name\":\"X\",\"datatype\":\"" + type + "\",\"shape\":["
                + shape + "],\"data\":" + data(random) + "}]}");
        int data = text.indexOf("\"data\":") + 7;
        for (int i = random.nextInt(3); i > 0; i--) {
            int at = data + random.nextInt(text.length() - data);
            text.replace(at, at + random.nextInt(2), WRONG[random.nextInt(WRONG.length)]);
        }
        byte[] body = text.toString().getBytes(StandardCharsets.ISO_8859_1);

        String expected = syntaxError(body);
        String found = error(body);

        if (!expected.isEmpty()) {
            assertThat(found).as(text.toString()).isEqualTo(expected);
        } else {
            assertThat(found)
                    .as(text.toString())
                    .doesNotContain("failed to parse the request JSON buffer", "invalid array");
        }
    }

    private static String data(Random random) {
        String[] elements = new String[6];
        for (int i = 0; i < elements.length; i++) {
            elements[i] =
                    random.nextInt(4) == 0 ? random.nextInt(100) + "." + random.nextInt(1000) : "" + random.nextInt(99);
        }
        String joint = random.nextBoolean() ? "," : ", ";
        String flat = String.join(joint, elements);
        return switch (random.nextInt(3)) {
            case 0 -> "[" + flat + "]";
            case 1 -> "[[" + flat + "]]";
            default ->
                "[[" + String.join(joint, elements[0], elements[1], elements[2]) + "]" + joint + "["
                        + String.join(joint, elements[3], elements[4], elements[5]) + "]]";
        };
    }

    /** Returns the error of a reader that only checks the syntax. */
    private static String syntaxError(byte[] body) {
        try {
            JsonReader json = new JsonReader(MemorySegment.ofArray(body));
            json.begin();
            json.skipValue();
            json.finish();
            return "";
        } catch (InferenceException e) {
            return e.getMessage();
        }
    }

    private static String error(byte[] body) {
        try (LeakCheckingMemory memory = new LeakCheckingMemory()) {
            RequestMemory taken = new RequestMemory(memory, new FakeInferenceServer(memory).sharedMemory());
            try {
                new InferRequestReader("m", MemorySegment.ofArray(body), body.length, taken, 1 << 20).read();
                return "";
            } catch (InferenceException e) {
                return e.getMessage();
            } finally {
                taken.run();
            }
        }
    }
}
