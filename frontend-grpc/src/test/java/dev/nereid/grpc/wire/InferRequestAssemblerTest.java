package dev.nereid.grpc.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.frontend.ForwardedHeaders;
import dev.nereid.grpc.testing.TestMessages;
import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.FakeSharedMemory;
import dev.nereid.testkit.LeakCheckingMemory;
import inference.InferParameter;
import inference.InferTensorContents;
import inference.ModelInferRequest;
import inference.ModelInferRequest.InferInputTensor;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

/** Memory of assembled requests. */
final class InferRequestAssemblerTest {
    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final FakeSharedMemory shared = new FakeInferenceServer(memory).sharedMemory();
    private final InferRequestAssembler assembler = new InferRequestAssembler(memory, shared, Integer.MAX_VALUE);

    private AssembledRequest assemble(ModelInferRequest request) {
        InferMessage message = InferMessageReader.read(TestMessages.cut(request.toByteArray(), List.of()));
        return assembler.assemble(
                message,
                ModelRef.latest("m"),
                new CallContext(OptionalLong.empty(), ForwardedHeaders.NONE, Optional.empty()));
    }

    private static InferInputTensor.Builder input(String name, String datatype, long... shape) {
        InferInputTensor.Builder input =
                InferInputTensor.newBuilder().setName(name).setDatatype(datatype);
        for (long dim : shape) {
            input.addShape(dim);
        }
        return input;
    }

    private static ModelInferRequest.Builder raw(int... sizes) {
        ModelInferRequest.Builder request = ModelInferRequest.newBuilder().setModelName("m");
        for (int size : sizes) {
            byte[] content = new byte[size];
            Arrays.fill(content, (byte) size);
            request.addInputs(input("I" + size, "UINT8", size)).addRawInputContents(ByteString.copyFrom(content));
        }
        return request;
    }

    @Test
    void alignsEveryInputInMemoryThatIsReleasedOnce() {
        AssembledRequest assembled = assemble(raw(1, 64, 65, 3).build());

        assertThat(memory.bytesInUse()).isEqualTo(64 + 64 + 128 + 64);
        assertThat(assembled.request().inputs()).hasSize(4);
        for (InputTensor input : assembled.request().inputs()) {
            byte[] content = input.data().toArray(ValueLayout.JAVA_BYTE);
            assertThat(input.data().address() % 64).isZero();
            assertThat(content).hasSize((int) input.dims()[0]).containsOnly(content.length);
        }
        assembled.request().release().run();
        assertThat(memory.bytesInUse()).isZero();
    }

    @Test
    void countsTheHeapOfALongMessageBesidesItsTensors() {
        int tensor = 64 * 1024;
        AssembledRequest tensors = assemble(raw(tensor).build());
        assertThat(memory.bytesInUse()).as("mostly a tensor").isEqualTo(tensor);
        tensors.request().release().run();

        ModelInferRequest texts = raw(tensor).setId("x".repeat(20_000)).build();
        AssembledRequest assembled = assemble(texts);

        assertThat(memory.bytesInUse()).isEqualTo(tensor + 8L * (texts.getSerializedSize() - tensor));
        assembled.request().release().run();
        assertThat(memory.bytesInUse()).isZero();

        InferTensorContents ones = InferTensorContents.newBuilder()
                .addBytesContents(ByteString.copyFrom(new byte[tensor]))
                .build();
        AssembledRequest typed = assemble(ModelInferRequest.newBuilder()
                .addInputs(input("I", "BYTES", 1).setContents(ones))
                .build());
        assertThat(memory.bytesInUse()).as("mostly typed contents").isEqualTo(tensor + 64);
        typed.request().release().run();
    }

    @Test
    void endsLeasesOfSharedMemoryIfAnotherInputIsRefused() {
        shared.register("r", "/key", 0, 64);
        InferInputTensor.Builder leased = input("A", "UINT8", 16)
                .putParameters(
                        "shared_memory_region",
                        InferParameter.newBuilder().setStringParam("r").build())
                .putParameters(
                        "shared_memory_byte_size",
                        InferParameter.newBuilder().setInt64Param(16).build());
        ModelInferRequest request = ModelInferRequest.newBuilder()
                .setModelName("m")
                .addInputs(leased)
                .addInputs(input("B", "UINT8", 1))
                .build();

        assertThatThrownBy(() -> assemble(request))
                .hasMessage("unable to find data for input tensor 'B' for model 'm' in request.");

        assertThat(shared.events()).containsExactly("leased r", "closed r");
    }
}
