package dev.nereid.examples.charlm;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;

/** A recurrent network that reads characters and says which may be next. Immutable; see {@code train_char_lm.py}. */
final class CharNetwork {
    /** The line feed, then the characters from space to tilde. */
    static final int SYMBOLS = 96;

    static final int HIDDEN = 128;

    private static final int WEIGHTS = SYMBOLS * HIDDEN + HIDDEN * HIDDEN + HIDDEN + SYMBOLS * HIDDEN + SYMBOLS;

    private final float[] inputWeights;
    private final float[] hiddenWeights;
    private final float[] hiddenBias;
    private final float[] outputWeights;
    private final float[] outputBias;

    private CharNetwork(FloatBuffer weights) {
        inputWeights = next(weights, SYMBOLS * HIDDEN);
        hiddenWeights = next(weights, HIDDEN * HIDDEN);
        hiddenBias = next(weights, HIDDEN);
        outputWeights = next(weights, SYMBOLS * HIDDEN);
        outputBias = next(weights, SYMBOLS);
    }

    private static float[] next(FloatBuffer from, int count) {
        float[] values = new float[count];
        from.get(values);
        return values;
    }

    /** Creates a network of the weights that the training writes. */
    static CharNetwork of(byte[] content) {
        if (content.length != WEIGHTS * Float.BYTES) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT,
                    "weights.bin: " + content.length + " bytes (expected: " + WEIGHTS * Float.BYTES + ")");
        }
        return new CharNetwork(
                ByteBuffer.wrap(content).order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer());
    }

    /** Returns the symbol of a character; that of a space for one that the network does not know. */
    static int symbol(char character) {
        return character == '\n' ? 0 : character >= ' ' && character <= '~' ? character - 31 : 1;
    }

    static char character(int symbol) {
        return symbol == 0 ? '\n' : (char) (symbol + 31);
    }

    /** Reads one symbol: replaces the hidden numbers. */
    void read(int symbol, float[] hidden) {
        float[] next = new float[HIDDEN];
        for (int i = 0; i < HIDDEN; i++) {
            float sum = inputWeights[symbol * HIDDEN + i] + hiddenBias[i];
            for (int j = 0; j < HIDDEN; j++) {
                sum += hiddenWeights[i * HIDDEN + j] * hidden[j];
            }
            next[i] = (float) StrictMath.tanh(sum);
        }
        System.arraycopy(next, 0, hidden, 0, HIDDEN);
    }

    /** Returns the logits of the next symbol. */
    double[] logits(float[] hidden) {
        double[] logits = new double[SYMBOLS];
        for (int symbol = 0; symbol < SYMBOLS; symbol++) {
            float sum = outputBias[symbol];
            for (int i = 0; i < HIDDEN; i++) {
                sum += outputWeights[symbol * HIDDEN + i] * hidden[i];
            }
            logits[symbol] = sum;
        }
        return logits;
    }

    /**
     * Chooses the next symbol. The same arguments give the same symbol.
     *
     * @param temperature 0 for the likeliest symbol; higher for more varied text
     * @param random from 0 to 1
     */
    int choose(float[] hidden, double temperature, double random) {
        double[] logits = logits(hidden);
        int best = 0;
        for (int i = 1; i < SYMBOLS; i++) {
            best = logits[i] > logits[best] ? i : best;
        }
        if (temperature == 0) {
            return best;
        }
        double sum = 0;
        double[] sums = new double[SYMBOLS];
        for (int i = 0; i < SYMBOLS; i++) {
            sum += StrictMath.exp((logits[i] - logits[best]) / temperature);
            sums[i] = sum;
        }
        int chosen = 0;
        while (chosen < SYMBOLS - 1 && sums[chosen] < random * sum) {
            chosen++;
        }
        return chosen;
    }
}
