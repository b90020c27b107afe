package dev.nereid.examples.charlm;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.Parameters;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.SplittableRandom;

/**
 * Writes one character of each request of a batch, and has the request executed again until it has all of them. Keeps
 * nothing: the server keeps the state of each request. Confined to the instance's thread.
 */
final class CharLmInstance implements ModelInstance {
    /** The numbers of the state: the hidden ones, the last symbol, and the number of characters so far. */
    static final int STATE = CharNetwork.HIDDEN + 2;

    private static final int LAST = CharNetwork.HIDDEN;
    private static final int COUNT = CharNetwork.HIDDEN + 1;
    private static final int MAX_PROMPT = 4096;
    private static final int MAX_TOKENS = 4096;

    private final CharNetwork network;

    CharLmInstance(CharNetwork network) {
        this.network = network;
    }

    /**
     * The settings of the text that a client wants.
     *
     * @param maxTokens the number of characters
     * @param temperature 0 for the likeliest characters
     * @param seed chooses one of the texts
     */
    private record Wish(int maxTokens, double temperature, long seed) {
        static Wish of(InferenceRequest request) {
            Parameters parameters = request.parameters();
            return new Wish(
                    parameters.integer("max_tokens", 1, MAX_TOKENS).orElse(64),
                    parameters.number("temperature", 0, 10).orElse(0),
                    parameters
                            .longInteger("seed", Long.MIN_VALUE, Long.MAX_VALUE)
                            .orElse(0));
        }
    }

    @Override
    public void execute(Batch batch) {
        for (InferenceRequest request : batch.requests()) {
            if (!request.isNullRequest()) {
                try {
                    write(request);
                } catch (BackendException e) {
                    request.fail(e);
                }
            }
        }
    }

    private void write(InferenceRequest request) {
        Wish wish = Wish.of(request);
        float[] state = request.requireInput(CharLmBackend.STATE_IN).data().toArray(ValueLayout.JAVA_FLOAT_UNALIGNED);
        if (request.sequence().map(Sequence::start).orElse(false)) {
            readPrompt(request, state);
        } else {
            network.read((int) state[LAST], state);
        }
        double random = new SplittableRandom(wish.seed() * 31 + (long) state[COUNT]).nextDouble();
        int symbol = network.choose(state, wish.temperature(), random);
        state[LAST] = symbol;
        state[COUNT]++;
        Tensor next = request.state(CharLmBackend.STATE_OUT).allocate(DataType.FP32, Shape.of(1, STATE));
        MemorySegment.copy(state, 0, next.data(), ValueLayout.JAVA_FLOAT_UNALIGNED, 0, STATE);
        respond(request, CharNetwork.character(symbol), state[COUNT] >= wish.maxTokens());
    }

    private void readPrompt(InferenceRequest request, float[] state) {
        String prompt = request.requireInput(CharLmBackend.INPUT).strings().getFirst();
        if (prompt.isEmpty() || prompt.length() > MAX_PROMPT) {
            throw invalid("input 'text_input': " + prompt.length() + " characters (expected: 1 to " + MAX_PROMPT + ")");
        }
        for (int i = 0; i < prompt.length(); i++) {
            network.read(CharNetwork.symbol(prompt.charAt(i)), state);
        }
    }

    private static void respond(InferenceRequest request, char character, boolean last) {
        ResponseSender sender = request.sender();
        InferenceResponse response = sender.newResponse();
        response.put(CharLmBackend.OUTPUT, Tensor.ofStrings(Shape.of(1, 1), List.of(String.valueOf(character))));
        if (last) {
            sender.complete(response);
        } else {
            sender.send(response);
            request.reschedule();
        }
    }

    private static BackendException invalid(String message) {
        return new BackendException(ErrorCode.INVALID_ARGUMENT, message);
    }
}
