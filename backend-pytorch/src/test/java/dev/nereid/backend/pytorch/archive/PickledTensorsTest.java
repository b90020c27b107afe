package dev.nereid.backend.pytorch.archive;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.io.ByteArrayOutputStream;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Pickles of any bytes: what PyTorch would refuse passes, and what describes too large a tensor does not. */
@Timeout(60)
class PickledTensorsTest {
    private static final String STORAGE = "\u0080\2((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0aX\3\0\0\0cpu";
    private static final String TENSOR = "ctorch._utils\n_rebuild_tensor_v2\n" + STORAGE + "K\4tQ";

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
            assertThat(catchThrowable(() -> check(content.toString())))
                    .satisfiesAnyOf(
                            failure -> assertThat(failure).isNull(),
                            failure ->
                                    assertThat(failure).hasMessageContaining("(expected: at most one for each byte)"));
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

    /** Returns the pickle of a tensor, up to its strides. */
    private static String tensor(String offset, String sizes, String strides) {
        return TENSOR + offset + sizes + strides + "tR.";
    }

    @Test
    void tensorsWithinTheRecord() {
        assertThatCode(() -> check(tensor("K\0", "K\4\u0085", "K\1\u0085"))).doesNotThrowAnyException();
        assertThatCode(() -> check(tensor("K\3", ")", ")"))).doesNotThrowAnyException();
        assertThatCode(() -> check(tensor("K\1", "K\3K\u00FF\u0086", "K\1K\0\u0086")))
                .doesNotThrowAnyException(); // expanded
    }

    @ParameterizedTest
    @ValueSource(strings = {"K\1", "\u008A\10\u00FF\u00FF\u00FF\u00FF\u00FF\u00FF\u00FF\u007F"})
    void tensorBehindTheRecord(String offset) {
        assertThatThrownBy(() -> check(tensor(offset, "K\4\u0085", "K\1\u0085")))
                .isInstanceOf(TorchFileException.class)
                .hasMessageStartingWith("damaged: a tensor [4] with strides [1] from ")
                .hasMessageEndingWith(" (expected: within the 4 elements of record 'data/a')");
    }

    @ParameterizedTest
    @ValueSource(strings = {"a", "b"})
    void recordWithoutElements(String key) {
        String none = TENSOR.replace("K\4tQ", "K\0tQ").replace("X\1\0\0\0a", "X\1\0\0\0" + key);

        assertThatCode(() -> check(none + "K\0K\0\u0085K\1\u0085tR.")).doesNotThrowAnyException();
        assertThatThrownBy(() -> check(none + "K\0))tR."))
                .isInstanceOf(TorchFileException.class)
                .hasMessage("damaged: a tensor [] with strides [] from 0 (expected: within the 0 elements of record"
                        + " 'data/" + key + "')");
    }

    @ParameterizedTest
    @CsvSource({"Byte, 16", "Half, 8", "ComplexHalf, 4", "Float8_e5m2, 16", "Double, 2", "ComplexDouble, 1"})
    void sizesOfElements(String type, int elements) {
        String storage = STORAGE.replace("Float", type);
        assertThatCode(() -> check(storage + "K" + (char) elements + "tQ.")).doesNotThrowAnyException();
        assertThatThrownBy(() -> check(storage + "K" + (char) (elements + 1) + "tQ."))
                .isInstanceOf(TorchFileException.class);
    }

    @Test
    void valuesThatAreKept() {
        assertThatCode(() -> check("Nr\5\0\0\0.")).doesNotThrowAnyException();
        assertThatThrownBy(() -> check("Nr\0\0\0\1."))
                .isInstanceOf(TorchFileException.class)
                .hasMessage("damaged: a pickle of 7 bytes keeps value 16777216 (expected: at most one for each byte)");
        assertThatThrownBy(() -> check("Nr\u00FF\u00FF\u00FF\u00FF."))
                .isInstanceOf(TorchFileException.class)
                .hasMessageContaining("keeps value 4294967295 ");
    }

    /** A tuple that is doubled 30 times, beside a size that is refused. */
    @Test
    void sizesThatDouble() {
        StringBuilder tuple = new StringBuilder("K\1");
        for (int i = 0; i < 30; i++) {
            tuple.append("q\0h\0\u0086");
        }
        String sizes = "J\u00FF\u00FF\u00FF\u00FF" + tuple + "\u0086";

        assertThatCode(() -> check(tensor("K\0", sizes, "K\1K\1\u0086"))).doesNotThrowAnyException();
        assertThatCode(() -> check(tensor("K\0", "K\1K\1\u0086", sizes))).doesNotThrowAnyException();
    }

    @Test
    void firstNumbersOfManySizes() {
        String sizes = "(" + "K\2".repeat(20) + "t";
        assertThatThrownBy(() -> check(tensor("K\0", sizes, sizes)))
                .isInstanceOf(TorchFileException.class)
                .hasMessage(
                        "damaged: a tensor [2, 2, 2, 2, 2, 2, 2, 2, …] with strides [2, 2, 2, 2, 2, 2, 2, 2, …] from"
                                + " 0 (expected: within the 4 elements of record 'data/a')");
    }

    @Test
    void dimensions() {
        String most = "(" + "K\1".repeat(PickledTensors.MAX_DIMENSIONS) + "t";
        assertThatCode(() -> check(tensor("K\0", most, most))).doesNotThrowAnyException();

        String more = "(" + "K\1".repeat(PickledTensors.MAX_DIMENSIONS + 1) + "t";
        assertThatThrownBy(() -> check(tensor("K\0", more, more)))
                .isInstanceOf(TorchFileException.class)
                .hasMessage("damaged: a tensor of 1001 dimensions (expected: at most 1000)");
    }

    @Test
    void longNamesAreCut() {
        String prefix = "d".repeat(60_000) + "/";
        String key = STORAGE + "K\5tQ.";
        assertThatThrownBy(() -> PickledTensors.check(
                        key.getBytes(StandardCharsets.ISO_8859_1), Map.of(prefix + "a", 16L), prefix))
                .isInstanceOf(TorchFileException.class)
                .hasMessage("damaged: record '" + "d".repeat(100)
                        + "…' has 16 bytes (expected: 5 elements of 4 bytes, as the module says)");
    }

    /** Operations that make the most of a few bytes, in a pickle of the largest size that is checked. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "\u0085",
                "\u0085q\0",
                "h\0h\0\u0086q\0",
                "(",
                ")",
                "N",
                "(t",
                "((((t",
                "M\u00FF\u00FF",
                "U\0",
                "h\0h\0h\0\u0087",
                "(h\0h\0h\0h\0h\0h\0t",
                "ca\nb\n",
                "])R",
                "])\u0081"
            })
    void memoryHasABound(String operations) {
        byte[] unit = ("K\1q\0" + operations.repeat(100_000)).getBytes(StandardCharsets.ISO_8859_1);
        ByteArrayOutputStream pickle = new ByteArrayOutputStream();
        while (pickle.size() + unit.length <= PickledTensors.MAX_BYTES) {
            pickle.writeBytes(unit);
        }

        assertThat(allocatedBytes(pickle.toByteArray())).isLessThan(100L << 20);
    }

    @Test
    void memoryOfTheMemoHasABound() {
        ByteArrayOutputStream pickle = new ByteArrayOutputStream();
        pickle.write('N');
        for (int i = 0; i < 1_500_000; i++) {
            pickle.writeBytes(new byte[] {'r', (byte) i, (byte) (i >> 8), (byte) (i >> 16), 0});
        }

        assertThat(allocatedBytes(pickle.toByteArray())).isLessThan(100L << 20);
    }

    @Test
    void memoryOfLongNamesHasABound() {
        byte[] pickle = ("c" + "a".repeat(4_000_000) + "\n" + "b".repeat(4_000_000) + "\n")
                .getBytes(StandardCharsets.ISO_8859_1);

        assertThat(allocatedBytes(pickle)).isLessThan(1 << 20);
    }

    private static long allocatedBytes(byte[] pickle) {
        var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        long before = threads.getCurrentThreadAllocatedBytes();
        assertThatCode(() -> check(pickle)).doesNotThrowAnyException();
        return threads.getCurrentThreadAllocatedBytes() - before;
    }

    @Test
    void checksUpToTheLastOperation() {
        String tensor = tensor("K\5", ")", ")");
        int operations = 16; // up to the one that makes the tensor
        String before = "N".repeat(PickledTensors.MAX_OPERATIONS - operations);

        assertThatThrownBy(() -> check(before + tensor)).isInstanceOf(TorchFileException.class);
        assertThatCode(() -> check(before + "N" + tensor)).doesNotThrowAnyException();
    }
}
