package dev.nereid.http.json;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Floats have the same digits as in Java, in the reference server's notation. */
class ShortestDecimalTest {
    private static final int RANDOM_FLOATS = 10_000_000;
    private static final int EXPONENTS = 256;
    private static final int FRACTION_BITS = 23;
    private static final int EDGES = 1000;

    private final JsonWriter json = new JsonWriter();
    private final StringBuilder expected = new StringBuilder();

    @Tag("slow")
    @Test
    void agreesWithJavaAboutRandomFloats() {
        Random random = new Random(20_260_719);
        for (int i = 0; i < RANDOM_FLOATS; i++) {
            assertSame(random.nextInt());
        }
    }

    @Test
    void agreesWithJavaNearEveryPowerOfTwo() {
        for (int exponent = 0; exponent < EXPONENTS; exponent++) {
            for (int fraction = -EDGES; fraction < EDGES; fraction++) {
                assertSame(((exponent << FRACTION_BITS) + fraction) & Integer.MAX_VALUE);
            }
        }
    }

    @Test
    void agreesWithJavaAboutShortNumbers() {
        for (int i = 0; i < 1_000_000; i++) {
            assertSame(Float.floatToRawIntBits(i));
            assertSame(Float.floatToRawIntBits(i / 1000f));
            assertSame(Float.floatToRawIntBits(-i * 1e6f));
        }
    }

    private void assertSame(int bits) {
        float value = Float.intBitsToFloat(bits);
        expected.setLength(0);
        JsonDecimals.restyle(expected.append(value));
        json.clear();
        json.real(value);
        // Compared without creating a text for each of many.
        boolean same = json.size() == expected.length();
        for (int i = 0; same && i < expected.length(); i++) {
            same = json.array()[i] == expected.charAt(i);
        }
        if (!same) {
            assertThat(new String(json.toByteArray(), StandardCharsets.US_ASCII))
                    .hasToString(expected.toString());
        }
    }
}
