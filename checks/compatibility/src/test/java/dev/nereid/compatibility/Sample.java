package dev.nereid.compatibility;

import java.util.HexFormat;
import java.util.Locale;
import java.util.stream.Stream;

/**
 * A tensor of one data type, as JSON and as bytes. Immutable.
 *
 * @param datatype the name of the type on the wire
 * @param configType its name in configurations, without the prefix
 * @param count how many elements it has
 * @param json the elements as the server writes them
 * @param hex the elements in memory
 */
record Sample(String datatype, String configType, int count, String json, String hex) {
    /** Every data type that there is. */
    static Stream<Sample> all() {
        return Stream.of(
                of("BOOL", 3, "[true,false,true]", "010001"),
                of("UINT8", 2, "[0,255]", "00ff"),
                of("UINT16", 2, "[1,65535]", "0100ffff"),
                of("UINT32", 2, "[1,4294967295]", "01000000ffffffff"),
                of("UINT64", 2, "[1,18446744073709551615]", "0100000000000000ffffffffffffffff"),
                of("INT8", 2, "[-128,127]", "807f"),
                of("INT16", 2, "[-32768,32767]", "0080ff7f"),
                of("INT32", 2, "[-2147483648,2147483647]", "00000080ffffff7f"),
                of("INT64", 2, "[-9223372036854775808,9223372036854775807]", "0000000000000080ffffffffffffff7f"),
                of("FP16", 2, "[1.5,-2.25]", "003e80c0"),
                of("FP32", 2, "[0.1,-2.25]", "cdcccc3d000010c0"),
                of("FP64", 2, "[0.1,-2.25]", "9a9999999999b93f00000000000002c0"),
                of("BF16", 2, "[1.5,-2.25]", "c03f10c0"),
                new Sample("BYTES", "STRING", 2, "[\"é\\n\",\"\"]", "03000000c3a90a00000000"));
    }

    /** Returns the sample of a type. */
    static Sample of(String datatype) {
        return all().filter(sample -> sample.datatype().equals(datatype))
                .findFirst()
                .orElseThrow();
    }

    private static Sample of(String datatype, int count, String json, String hex) {
        return new Sample(datatype, datatype, count, json, hex);
    }

    byte[] bytes() {
        return HexFormat.of().parseHex(hex);
    }

    /** Returns the name of the model that returns tensors of this type unchanged. */
    String model() {
        return "echo_" + datatype.toLowerCase(Locale.ROOT);
    }

    @Override
    public String toString() {
        return datatype;
    }
}
