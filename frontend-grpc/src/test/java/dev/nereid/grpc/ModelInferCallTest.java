package dev.nereid.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.DataType;
import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.FakeModel;
import dev.nereid.testkit.LeakCheckingMemory;
import io.grpc.Status;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;

final class ModelInferCallTest {
    private final LeakCheckingMemory memory = new LeakCheckingMemory();
    private final FakeInferenceServer server = new FakeInferenceServer(memory);
    private final RecordedStream stream = new RecordedStream();

    @Test
    void answersIfThereIsNoMemoryForTheResponse() {
        server.add(FakeModel.identity("m", DataType.FP32, 0, -1));
        InferCalls calls = new InferCalls(
                new CallAssembler(memory, server.sharedMemory(), Integer.MAX_VALUE),
                Optional.empty(),
                ResponseCompression.NONE,
                new TransportMemory(memory, Long.MAX_VALUE),
                System::nanoTime);
        ModelInferCall call = new ModelInferCall(
                stream,
                server,
                calls,
                new ResponseArrays(),
                new CallOrigin(OptionalLong.empty(), ForwardedHeaders.NONE));
        stream.failure = new OutOfMemoryError("no memory, says the test");
        byte[] request =
                Frontend.request("m", "FP32", Frontend.floats(1), 1).build().toByteArray();

        call.onMessage(new Parsed.Ok<>(InferMessageReader.read(Messages.cut(request, List.of()))));
        call.onHalfClose();

        assertThat(stream.status).isNotNull();
        assertThat(stream.status.getCode()).isEqualTo(Status.Code.UNAVAILABLE);
        assertThat(memory.buffersInUse()).isZero();
        memory.close();
    }
}
