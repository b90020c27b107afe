package dev.nereid.distribution.traffic;

import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.distribution.testing.TensorBytes;
import dev.nereid.spi.ErrorCode;
import java.util.Random;

/**
 * Draws valid and invalid requests of many kinds, with the expected outcome of each. Confined to its client's thread;
 * the same seed draws the same requests.
 */
final class Traffic {
    static final String ECHO = "echo";
    static final String WORDS = "words";
    static final String SLOW = "slow";
    static final String SUM = "sum";

    /** The behavior of a client with a request. */
    enum ClientBehavior {
        /** Sends the request and waits for the response. */
        WAITING,
        /** Disconnects before the whole request is sent. */
        LEAVING_EARLY,
        /** Disconnects after the request was sent. */
        LEAVING_LATE
    }

    /** The expected outcome. */
    sealed interface Expected {
        /** Outputs, in the order of the model. Immutable, except the arrays, which are never changed. */
        @SuppressWarnings("ArrayRecordComponent") // Never compared.
        record Outputs(byte[]... bytes) implements Expected {}

        /** An error. */
        record Refusal(ErrorCode code, String text) implements Expected {}

        /** The outputs once the model is loaded, an error with the reason before. */
        record OutputsOrNotReady(Outputs outputs) implements Expected {}
    }

    /**
     * A request and its expected outcome.
     *
     * @param request the request
     * @param expected the expected outcome
     * @param behavior how the client is to behave
     */
    record Exchange(ClientRequest request, Expected expected, ClientBehavior behavior) {}

    private static final int LARGE_FLOATS = 150_000;
    private static final int PERCENT = 100;

    private final Random random;
    private final String lateModel;
    private final byte[] large;
    private int drawn;

    /**
     * Begins to draw.
     *
     * @param seed the same for the same requests
     * @param lateModel a model that may not be loaded yet
     */
    Traffic(long seed, String lateModel) {
        random = new Random(seed);
        this.lateModel = lateModel;
        large = floats(LARGE_FLOATS);
    }

    Exchange next() {
        int chance = random.nextInt(PERCENT);
        String id = "r" + drawn++;
        if (chance < 35) {
            return echo(id, ECHO, 1 + random.nextInt(64));
        } else if (chance < 45) {
            return sum(id);
        } else if (chance < 53) {
            return words(id);
        } else if (chance < 57) {
            return exchange(
                    ClientRequest.of(ECHO).withId(id).input("INPUT0", "FP32", large, 1, LARGE_FLOATS),
                    new Expected.Outputs(large));
        } else if (chance < 65) {
            Exchange late = echo(id, lateModel, 3);
            return exchange(late.request(), new Expected.OutputsOrNotReady((Expected.Outputs) late.expected()));
        } else if (chance < 97) {
            return wrong(id);
        } else if (chance < 99) {
            return new Exchange(echo(id, ECHO, 20_000).request(), new Expected.Outputs(), ClientBehavior.LEAVING_EARLY);
        }
        return new Exchange(echo(id, SLOW, 8).request(), new Expected.Outputs(), ClientBehavior.LEAVING_LATE);
    }

    private Exchange echo(String id, String model, int elements) {
        byte[] data = floats(elements);
        return exchange(
                ClientRequest.of(model).withId(id).input("INPUT0", "FP32", data, 1, elements),
                new Expected.Outputs(data));
    }

    private Exchange sum(String id) {
        int[] left = random.ints(4, -1000, 1000).toArray();
        int[] right = random.ints(4, -1000, 1000).toArray();
        int[] sum = new int[4];
        int[] difference = new int[4];
        for (int i = 0; i < sum.length; i++) {
            sum[i] = left[i] + right[i];
            difference[i] = left[i] - right[i];
        }
        return exchange(
                ClientRequest.of(SUM)
                        .withId(id)
                        .input("INPUT0", "INT32", TensorBytes.ints(left), 1, 4)
                        .input("INPUT1", "INT32", TensorBytes.ints(right), 1, 4),
                new Expected.Outputs(TensorBytes.ints(sum), TensorBytes.ints(difference)));
    }

    private Exchange words(String id) {
        String[] words = new String[1 + random.nextInt(8)];
        for (int i = 0; i < words.length; i++) {
            words[i] = "w\u00f6rd".repeat(random.nextInt(20));
        }
        byte[] data = TensorBytes.strings(words);
        return exchange(
                ClientRequest.of(WORDS).withId(id).input("INPUT0", "BYTES", data, 1, words.length),
                new Expected.Outputs(data));
    }

    private Exchange wrong(String id) {
        byte[] data = floats(4);
        ClientRequest echo = ClientRequest.of(ECHO).withId(id);
        String prefix = "[request id: " + id + "] ";
        return switch (random.nextInt(7)) {
            case 0 ->
                refused(
                        ClientRequest.of("nobody").withId(id).input("INPUT0", "FP32", data, 1, 4),
                        ErrorCode.NOT_FOUND,
                        "Request for unknown model: 'nobody' is not found");
            case 1 ->
                refused(
                        echo.withVersion("7").input("INPUT0", "FP32", data, 1, 4),
                        ErrorCode.NOT_FOUND,
                        "Request for unknown model: 'echo' version 7 is not found");
            case 2 ->
                refused(
                        echo.input("INPUT0", "INT32", data, 1, 4),
                        ErrorCode.INVALID_ARGUMENT,
                        prefix + "inference input 'INPUT0' data-type is 'INT32', but model 'echo' expects 'FP32'");
            case 3 ->
                refused(
                        echo.input("OTHER", "FP32", data, 1, 4),
                        ErrorCode.INVALID_ARGUMENT,
                        "unexpected inference input 'OTHER' for model 'echo'");
            case 4 ->
                refused(
                        echo.input("INPUT0", "FP32", data, 1, 5),
                        ErrorCode.INVALID_ARGUMENT,
                        prefix + "input byte size mismatch for input 'INPUT0' for model 'echo'. Expected 20, got 16");
            case 5 ->
                refused(
                        echo.input("INPUT0", "FP32", large, 1, LARGE_FLOATS - 1),
                        ErrorCode.INVALID_ARGUMENT,
                        prefix + "input byte size mismatch for input 'INPUT0' for model 'echo'. Expected 599996, got"
                                + " 600000");
            default ->
                refused(
                        ClientRequest.of(WORDS).withId(id).input("INPUT0", "BYTES", TensorBytes.strings("a"), 1, 2),
                        ErrorCode.INVALID_ARGUMENT,
                        prefix + "expected 2 string elements for inference input 'INPUT0' for model 'words', got 1");
        };
    }

    private byte[] floats(int elements) {
        float[] values = new float[elements];
        for (int i = 0; i < elements; i++) {
            values[i] = random.nextFloat();
        }
        return TensorBytes.floats(values);
    }

    private static Exchange refused(ClientRequest request, ErrorCode code, String text) {
        return exchange(request, new Expected.Refusal(code, text));
    }

    private static Exchange exchange(ClientRequest request, Expected response) {
        return new Exchange(request, response, ClientBehavior.WAITING);
    }
}
