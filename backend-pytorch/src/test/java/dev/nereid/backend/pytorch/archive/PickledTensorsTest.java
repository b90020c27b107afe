package dev.nereid.backend.pytorch.archive;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Pickles of any bytes: those that PyTorch would refuse pass, and what describes too large a tensor does not. */
class PickledTensorsTest {
    private static final String STORAGE = "\u0080\2((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0aX\3\0\0\0cpu";

    private static void check(byte[] pickle) throws TorchFileException {
        PickledTensors.check(pickle, Map.of("data/a", 16L), "data/");
    }

    private static void check(String pickle) throws TorchFileException {
        check(pickle.getBytes(StandardCharsets.ISO_8859_1));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                ".",
                "Q",
                "q\0",
                "R",
                "t",
                "e",
                "u",
                "a",
                "b",
                "s",
                "h\1",
                "j\1\0\0\0",
                "c",
                "ca\n",
                "X",
                "X\1",
                "X\u00FF\u00FF\u00FF\u00FF",
                "T\u00FF\u00FF\u00FF\u007F",
                "U\u00FF",
                "K",
                "J\1",
                "G",
                "\u0080",
                "\u0081",
                "\u0085",
                "\u0087K\1",
                "\u008A",
                "\u008A\u00FF",
                "\u008A\0",
                "))R",
                "NQ",
                "(((((",
                "\u00FF"
            })
    void notAPickle(String content) {
        assertThatCode(() -> check(content)).doesNotThrowAnyException();
    }

    @Test
    void anyBytes() {
        String operations = "()]}NGKMJXTUcqrhjteuabsRQ.\u0080\u0081\u0085\u0086\u0087\u0088\u0089\u008A\n\0\1";
        Random random = new Random(1);
        for (int i = 0; i < 100_000; i++) {
            StringBuilder content = new StringBuilder();
            for (int j = random.nextInt(40); j >= 0; j--) {
                content.append(operations.charAt(random.nextInt(operations.length())));
            }
            assertThatCode(() -> check(content.toString())).doesNotThrowAnyException();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"K\4", "M\4\0", "J\4\0\0\0", "\u008A\1\4", "K\0", "J\0\0\0\0"})
    void elementsOfTheRecord(String elements) {
        assertThatCode(() -> check(STORAGE + elements + "tQ.")).doesNotThrowAnyException();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "K\5",
                "M\0\1",
                "J\0\0\0\u0080",
                "\u008A\1\u00FF",
                "\u008A\10\u00FF\u00FF\u00FF\u00FF\u00FF\u00FF\u00FF\u007F"
            })
    void otherElementsThanThoseOfTheRecord(String elements) {
        assertThatThrownBy(() -> check(STORAGE + elements + "tQ."))
                .isInstanceOf(TorchFileException.class)
                .hasMessageStartingWith("damaged: record 'data/a' has 16 bytes (expected: ");
    }
}
