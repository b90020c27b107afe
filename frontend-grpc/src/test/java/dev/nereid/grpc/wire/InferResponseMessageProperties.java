package dev.nereid.grpc.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.grpc.testing.TestMessages;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.FakeResponse;
import inference.InferParameter;
import inference.ModelInferResponse;
import inference.ModelStreamInferResponse;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;
import org.junit.jupiter.api.Test;

/** Tests that the generated class reads the written responses. */
final class InferResponseMessageProperties {
    @Provide
    Arbitrary<InferResponse> responses() {
        Arbitrary<NamedTensor> outputs = Combinators.combine(
                        TestMessages.texts(),
                        Arbitraries.bytes().array(byte[].class).ofMaxSize(50_000),
                        Arbitraries.longs().between(1, 1_000_000_000_000L))
                .as((name, data, dim) -> new NamedTensor(
                        name, Tensor.of(DataType.BYTES, Shape.of(dim, data.length), MemorySegment.ofArray(data))));
        Arbitrary<ParameterValue> values = Arbitraries.oneOf(
                Arbitraries.of(true, false).map(ParameterValue.Bool::new),
                Arbitraries.longs().map(ParameterValue.Int::new),
                Arbitraries.doubles().map(ParameterValue.Real::new),
                TestMessages.texts().map(ParameterValue.Text::new));
        return Combinators.combine(
                        TestMessages.texts(),
                        Arbitraries.longs().greaterOrEqual(1),
                        TestMessages.texts(),
                        outputs.list().ofMaxSize(3),
                        Arbitraries.maps(TestMessages.texts(), values).ofMaxSize(3))
                .as((model, version, id, tensors, parameters) ->
                        FakeResponse.of(model, version, id, tensors, parameters, true));
    }

    /** Writes a response into an array that is always too short. */
    private InferResponseMessage message(InferResponse response) {
        return InferResponseMessage.of(response, SharedTensors.NONE, new byte[16]);
    }

    @Property(tries = 100)
    void writesWhatTheGeneratedClassReads(@ForAll("responses") InferResponse response) throws IOException {
        InferResponseMessage message = message(response);
        int length = message.available();
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();

        assertThat(message.drainTo(bytes)).isEqualTo(length).isEqualTo(bytes.size());
        assertThat(message.available()).isZero();

        assertThat(ModelInferResponse.parseFrom(bytes.toByteArray())).isEqualTo(generated(response));
    }

    @Property(tries = 50)
    void canBeReadAsAStream(@ForAll("responses") InferResponse response) throws IOException {
        InferResponseMessage message = message(response);
        byte[] bytes = message.readAllBytes();

        assertThat(message.read()).isEqualTo(-1);
        assertThat(ModelInferResponse.parseFrom(bytes)).isEqualTo(generated(response));

        InferResponseMessage byteByByte = message(response);
        assertThat(byteByByte.read()).isEqualTo(bytes[0] & 0xFF);
    }

    @Property(tries = 50)
    void writesTheRestOfWhatWasReadInPart(
            @ForAll @IntRange(min = 16_300, max = 16_500) int size, @ForAll @IntRange(max = 16_000) int read)
            throws IOException {
        byte[] data = new byte[size];
        Arrays.fill(data, (byte) size);
        Tensor tensor = Tensor.of(DataType.UINT8, Shape.of(size), MemorySegment.ofArray(data));
        InferResponse response = FakeResponse.of(true, new NamedTensor("o", tensor));
        InferResponseMessage message = message(response);
        int length = message.available();
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();

        bytes.write(message.readNBytes(read));
        assertThat(message.drainTo(bytes)).isEqualTo(length - read);

        assertThat(message.available()).isZero();
        assertThat(message.read()).isEqualTo(-1);
        assertThat(ModelInferResponse.parseFrom(bytes.toByteArray())).isEqualTo(generated(response));
    }

    @Property(tries = 50)
    void writesStreamedResponsesToo(@ForAll("responses") InferResponse response, @ForAll boolean isFinal)
            throws IOException {
        InferResponseMessage message = InferResponseMessage.streamed(response, isFinal, SharedTensors.NONE);

        assertThat(ModelStreamInferResponse.parseFrom(message.readAllBytes()))
                .isEqualTo(ModelStreamInferResponse.newBuilder()
                        .setInferResponse(generated(response).toBuilder()
                                .putParameters(
                                        "triton_final_response",
                                        InferParameter.newBuilder()
                                                .setBoolParam(isFinal)
                                                .build()))
                        .build());
    }

    private static ModelInferResponse generated(InferResponse response) {
        ModelInferResponse.Builder expected = ModelInferResponse.newBuilder()
                .setModelName(response.model())
                .setModelVersion(Long.toString(response.version()))
                .setId(response.id());
        response.parameters().forEach((name, value) -> expected.putParameters(name, generated(value)));
        for (NamedTensor output : response.outputs()) {
            var tensor = expected.addOutputsBuilder()
                    .setName(output.name())
                    .setDatatype(output.tensor().type().name());
            for (long dim : output.tensor().shape().toArray()) {
                tensor.addShape(dim);
            }
            expected.addRawOutputContents(
                    ByteString.copyFrom(output.tensor().data().asByteBuffer()));
        }
        return expected.build();
    }

    private static InferParameter generated(ParameterValue value) {
        InferParameter.Builder parameter = InferParameter.newBuilder();
        switch (value) {
            case ParameterValue.Bool(boolean flag) -> parameter.setBoolParam(flag);
            case ParameterValue.Int(long number) -> parameter.setInt64Param(number);
            case ParameterValue.Text(String text) -> parameter.setStringParam(text);
            case ParameterValue.Real(double number) -> parameter.setDoubleParam(number);
        }
        return parameter.build();
    }

    @Test
    void refusesResponsesThatAreTooLong() {
        byte[] mebibytes = new byte[16 * 1024 * 1024];
        Tensor tensor = Tensor.of(DataType.UINT8, Shape.of(mebibytes.length), MemorySegment.ofArray(mebibytes));
        List<NamedTensor> outputs = Collections.nCopies(129, new NamedTensor("o", tensor));
        InferResponse response = FakeResponse.of("m", 1, "", outputs, Map.of(), true);

        assertThatThrownBy(() -> message(response))
                .isInstanceOfSatisfying(
                        InferenceException.class,
                        error -> assertThat(error.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                .hasMessageMatching(
                        "Response has byte size 21642\\d{5} which exceeds gRPC's byte size limit 2147483647\\.");
    }
}
