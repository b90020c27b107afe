package dev.nereid.grpc.wire;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.CodedOutputStream;
import com.google.protobuf.DiscardUnknownFieldsParser;
import com.google.protobuf.InvalidProtocolBufferException;
import dev.nereid.api.InferenceException;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.grpc.testing.TestMessages;
import inference.InferParameter;
import inference.ModelInferRequest;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.ShrinkingMode;
import net.jqwik.api.Tuple;
import net.jqwik.api.Tuple.Tuple2;
import org.junit.jupiter.api.Assertions;

/** Tests the request reader against the generated class. */
final class InferMessageReaderProperties {
    @Provide
    Arbitrary<ModelInferRequest> requests() {
        return TestMessages.requests();
    }

    @Provide
    Arbitrary<List<Integer>> cuts() {
        return Arbitraries.integers().greaterOrEqual(0).list().ofMaxSize(20);
    }

    @Provide
    Arbitrary<byte[]> garbage() {
        // Mostly tags and lengths of this message, so that bytes after the first one are reached.
        return Arbitraries.frequencyOf(
                        Tuple.of(3, Arbitraries.of(0x0A, 0x12, 0x1A, 0x22, 0x2A, 0x32, 0x3A, 0x18, 0x08, 0x0B, 0x0C)),
                        Tuple.of(2, Arbitraries.integers().between(0, 12)),
                        Tuple.of(1, Arbitraries.integers().between(0, 255)))
                .map(Integer::byteValue)
                .array(Byte[].class)
                .ofMaxSize(40)
                .map(InferMessageReaderProperties::unboxed);
    }

    private static byte[] unboxed(Byte[] boxed) {
        byte[] bytes = new byte[boxed.length];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = boxed[i];
        }
        return bytes;
    }

    @Property(tries = 300, shrinking = ShrinkingMode.OFF)
    void readsWhatTheGeneratedClassWrote(
            @ForAll("requests") ModelInferRequest request, @ForAll("cuts") List<Integer> cuts) throws IOException {
        MessageBytes bytes = TestMessages.cut(request.toByteArray(), cuts);

        assertThat(generated(InferMessageReader.read(bytes))).isEqualTo(request);
    }

    @Property(tries = 300, shrinking = ShrinkingMode.OFF)
    void readsTwoMessagesAsOneMergedMessage(
            @ForAll("requests") ModelInferRequest first, @ForAll("requests") ModelInferRequest second)
            throws IOException {
        byte[] both = first.toByteString().concat(second.toByteString()).toByteArray();

        assertThat(generated(InferMessageReader.read(TestMessages.cut(both, List.of()))))
                .isEqualTo(ModelInferRequest.parseFrom(both));
    }

    @Property(tries = 2000, shrinking = ShrinkingMode.OFF)
    void agreesAboutGarbledMessages(
            @ForAll("requests") ModelInferRequest request,
            @ForAll("cuts") List<Integer> cuts,
            @ForAll("changes") List<Tuple2<Integer, Integer>> changes,
            @ForAll boolean truncated) {
        byte[] bytes = request.toByteArray();
        for (Tuple2<Integer, Integer> change : changes) {
            if (bytes.length > 0) {
                bytes[change.get1() % bytes.length] = change.get2().byteValue();
            }
        }
        if (truncated && bytes.length > 0) {
            bytes = Arrays.copyOf(bytes, Math.floorMod(changes.hashCode(), bytes.length));
        }
        assertAgreement(bytes, cuts);
    }

    @Provide
    Arbitrary<List<Tuple2<Integer, Integer>>> changes() {
        Arbitrary<Tuple2<Integer, Integer>> change = Combinators.combine(
                        Arbitraries.integers().greaterOrEqual(0),
                        Arbitraries.integers().between(0, 255))
                .as(Tuple::of);
        return change.list().ofMaxSize(3);
    }

    @Property(tries = 2000, shrinking = ShrinkingMode.OFF)
    void agreesAboutGarbage(@ForAll("garbage") byte[] bytes, @ForAll("cuts") List<Integer> cuts) {
        assertAgreement(bytes, cuts);
    }

    static void assertAgreement(byte[] bytes, List<Integer> cuts) {
        Optional<ModelInferRequest> expected;
        try {
            expected = Optional.of(ModelInferRequest.parseFrom(bytes));
        } catch (IOException _) {
            expected = Optional.empty();
        }
        Optional<ModelInferRequest> actual;
        try {
            actual = Optional.of(generated(InferMessageReader.read(TestMessages.cut(bytes, cuts))));
        } catch (InferenceException | IOException _) {
            actual = Optional.empty();
            if (TestMessages.mayHoldLongNumber(bytes)) {
                return;
            }
        }
        assertThat(actual.map(InferMessageReaderProperties::withoutUnknownFields))
                .as(() -> HexFormat.of().formatHex(bytes))
                .isEqualTo(expected.map(InferMessageReaderProperties::withoutUnknownFields));
    }

    private static ModelInferRequest withoutUnknownFields(ModelInferRequest request) {
        try {
            return DiscardUnknownFieldsParser.wrap(ModelInferRequest.parser()).parseFrom(request.toByteString());
        } catch (InvalidProtocolBufferException e) {
            return Assertions.fail(e);
        }
    }

    /** Converts a message into one of the generated class. */
    static ModelInferRequest generated(InferMessage message) throws IOException {
        ModelInferRequest.Builder request = ModelInferRequest.newBuilder()
                .setModelName(message.names().model())
                .setModelVersion(message.names().version())
                .setId(message.names().id());
        message.parameters().forEach((name, value) -> request.putParameters(name, generated(value)));
        for (InferMessage.Input input : message.inputs()) {
            var tensor = request.addInputsBuilder().setName(input.name()).setDatatype(input.datatype());
            for (long dim : input.shape().toArray()) {
                tensor.addShape(dim);
            }
            input.parameters().forEach((name, value) -> tensor.putParameters(name, generated(value)));
            for (ByteRange part : input.contents()) {
                tensor.getContentsBuilder().mergeFrom(content(message, part));
            }
        }
        for (InferMessage.Output output : message.outputs()) {
            var tensor = request.addOutputsBuilder().setName(output.name());
            output.parameters().forEach((name, value) -> tensor.putParameters(name, generated(value)));
        }
        for (ByteRange raw : message.rawContents()) {
            request.addRawInputContents(content(message, raw));
        }
        return request.build();
    }

    private static ByteString content(InferMessage message, ByteRange range) {
        byte[] copy = new byte[range.length()];
        message.bytes().copyTo(range, MemorySegment.ofArray(copy));
        return ByteString.copyFrom(copy);
    }

    private static InferParameter generated(WireParameter value) {
        InferParameter.Builder parameter = InferParameter.newBuilder();
        switch (value) {
            case WireParameter.None _ -> {}
            case WireParameter.Unsigned(long number) -> parameter.setUint64Param(number);
            case WireParameter.Value(ParameterValue.Bool(boolean flag)) -> parameter.setBoolParam(flag);
            case WireParameter.Value(ParameterValue.Int(long number)) -> parameter.setInt64Param(number);
            case WireParameter.Value(ParameterValue.Text(String text)) -> parameter.setStringParam(text);
            case WireParameter.Value(ParameterValue.Real(double number)) -> parameter.setDoubleParam(number);
        }
        return parameter.build();
    }

    @Example
    void readsDimensionsOneByOne() throws IOException {
        ByteArrayOutputStream shape = new ByteArrayOutputStream();
        CodedOutputStream output = CodedOutputStream.newInstance(shape);
        for (int dim = 1; dim <= 20; dim++) {
            output.writeInt64(3, dim);
        }
        output.flush();
        ByteArrayOutputStream message = new ByteArrayOutputStream();
        output = CodedOutputStream.newInstance(message);
        output.writeByteArray(5, shape.toByteArray());
        output.flush();

        InferMessage read = InferMessageReader.read(TestMessages.cut(message.toByteArray(), List.of(7)));

        assertThat(read.inputs().getFirst().shape().toArray())
                .containsExactly(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20);
    }

    @Example
    void refusesGroupsWithoutEnd() {
        byte[] groups = new byte[100_000];
        Arrays.fill(groups, (byte) 0x7B); // field 15, start of group

        Assertions.assertThrows(
                InferenceException.class, () -> InferMessageReader.read(TestMessages.cut(groups, List.of())));
    }

    @Example
    void refusesMoreEntriesThanAnyModelHas() {
        byte[] inputs = new byte[2 * 70_000];
        for (int i = 0; i < inputs.length; i += 2) {
            inputs[i] = 5 << 3 | WireReader.BYTES;
        }

        InferenceException error = Assertions.assertThrows(
                InferenceException.class, () -> InferMessageReader.read(TestMessages.cut(inputs, List.of())));

        assertThat(error).hasMessageContaining("at most 65536");
    }

    @Example
    void refusesLengthsBeyondTheMessage() {
        for (int field = 1; field <= 7; field++) {
            byte[] message = {
                (byte) (field << 3 | WireReader.BYTES),
                (byte) 0xFF,
                (byte) 0xFF,
                (byte) 0xFF,
                (byte) 0xFF,
                0x07,
                1,
                2,
                3
            };
            InferenceException error = Assertions.assertThrows(
                    InferenceException.class, () -> InferMessageReader.read(TestMessages.cut(message, List.of(3))));
            assertThat(error).hasMessage("Unable to parse request");
        }
    }

    @Property(tries = 200)
    void neverThrowsAnythingElse(@ForAll long seed) {
        byte[] bytes = new byte[200];
        new Random(seed).nextBytes(bytes);
        assertAgreement(bytes, List.of((int) seed & 0x7F));
    }
}
