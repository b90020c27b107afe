package dev.nereid.http.infer;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.http.body.RequestMemory;
import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;

/** Checks that a cached request equals the one read from the same text. Requests come in any order. */
class ParsedRequestCacheProperties {
    private static final int REQUESTS = 40;
    private static final Pattern SIZE = Pattern.compile("binary_data_size\":(\\d)");

    @Property(tries = 500)
    void sayWhatReadersSay(@ForAll Random random) {
        try (LeakCheckingMemory memory = new LeakCheckingMemory()) {
            ParsedRequestCache texts = new ParsedRequestCache();
            RequestMemory taken = new RequestMemory(memory, new FakeInferenceServer(memory).sharedMemory());
            for (int i = 0; i < REQUESTS; i++) {
                byte[] text = text(random).getBytes(StandardCharsets.US_ASCII);
                byte[] body =
                        Arrays.copyOf(text, text.length + payload(new String(text, StandardCharsets.US_ASCII), random));
                for (int at = text.length; at < body.length; at++) {
                    body[at] = (byte) random.nextInt();
                }
                checkRequest(texts, MemorySegment.ofArray(body), text.length, taken);
            }
            taken.run();
        }
    }

    private static void checkRequest(
            ParsedRequestCache texts, MemorySegment body, int jsonLength, RequestMemory taken) {
        Optional<InferRequestBody> known = Optional.ofNullable(texts.get("m", body, jsonLength));
        InferRequestReader reader = new InferRequestReader("m", body, jsonLength, taken, 1 << 20);
        Optional<InferRequestBody> anew;
        try {
            anew = Optional.of(reader.read());
        } catch (InferenceException e) {
            anew = Optional.empty();
        }
        if (known.isPresent()) {
            assertThat(described(known.get())).isEqualTo(described(anew.orElseThrow()));
        }
        if (anew.isPresent() && reader.usesOnlyBody()) {
            texts.put("m", body, jsonLength, anew.get());
        }
    }

    /** Few of each kind, so that most come again. */
    private static String text(Random random) {
        List<String> inputs = new ArrayList<>();
        for (int i = random.nextInt(3); i >= 0; i--) {
            inputs.add("{\"name\":\"" + "XY".charAt(random.nextInt(2)) + "\",\"shape\":[" + random.nextInt(3)
                    + "],\"datatype\":\"INT8\"," + source(random) + "}");
        }
        return "{" + (random.nextInt(4) == 0 ? "\"id\":\"" + random.nextInt(2) + "\"," : "") + "\"inputs\":["
                + String.join(",", inputs) + "]" + (random.nextInt(8) == 0 ? ",\"outputs\":[{\"name\":\"Y\"}]" : "")
                + (random.nextInt(8) == 0 ? ",\"parameters\":{\"priority\":" + random.nextInt(2) + "}" : "")
                + (random.nextInt(16) == 0 ? "" : "}");
    }

    /** As many bytes as the text says, or about as many. */
    private static int payload(String text, Random random) {
        int size = 0;
        Matcher sizes = SIZE.matcher(text);
        while (sizes.find()) {
            size += Integer.parseInt(sizes.group(1));
        }
        return random.nextInt(4) == 0 ? random.nextInt(5) : size;
    }

    private static String source(Random random) {
        return random.nextInt(8) == 0
                ? "\"data\":[1]"
                : "\"parameters\":{\"binary_data_size\":" + random.nextInt(3) + "}";
    }

    private static List<Object> described(InferRequestBody request) {
        List<Object> all = new ArrayList<>(List.of(
                request.id(),
                request.parameters(),
                request.options(),
                request.outputs().requested(),
                request.outputs().format("Y")));
        for (InputTensor input : request.inputs()) {
            all.add(input.toString());
            all.add(Arrays.toString(input.data().toArray(ValueLayout.JAVA_BYTE)));
            all.add(input.place());
        }
        return all;
    }
}
