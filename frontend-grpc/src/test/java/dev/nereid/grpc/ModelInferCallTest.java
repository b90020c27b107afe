package dev.nereid.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.spi.DataType;
import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.FakeModel;
import dev.nereid.testkit.LeakCheckingMemory;
import io.grpc.Detachable;
import io.grpc.HasByteBuffer;
import io.grpc.Status;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.slf4j.LoggerFactory;

final class ModelInferCallTest {
    private final LeakCheckingMemory memory = new LeakCheckingMemory();
    private final FakeInferenceServer server = new FakeInferenceServer(memory);
    private final RecordedStream stream = new RecordedStream();

    private ModelInferCall call() {
        server.add(FakeModel.identity("m", DataType.FP32, 0, -1));
        InferCalls calls = new InferCalls(
                new CallAssembler(memory, server.sharedMemory(), Integer.MAX_VALUE),
                Optional.empty(),
                ResponseCompressor.NONE,
                new TransportMemory(memory, Long.MAX_VALUE),
                System::nanoTime);
        return new ModelInferCall(
                stream,
                server,
                calls,
                new ResponseArrays(),
                new CallOrigin(OptionalLong.empty(), ForwardedHeaders.NONE, Optional.empty()));
    }

    @Test
    void answersIfThereIsNoMemoryForTheResponse() {
        ModelInferCall call = call();
        stream.failure = new OutOfMemoryError("Java heap space");
        byte[] request =
                Frontend.request("m", "FP32", Frontend.floats(1), 1).build().toByteArray();

        call.onMessage(new Parsed.Ok<>(InferMessageReader.read(Messages.cut(request, List.of()))));
        call.onHalfClose();

        assertThat(stream.status).isNotNull();
        assertThat(stream.status.getCode()).isEqualTo(Status.Code.UNAVAILABLE);
        assertThat(memory.buffersInUse()).isZero();
        memory.close();
        assertNothingFatalLogged();
    }

    /** The log takes fatal causes for the end of the process. */
    private static void assertNothingFatalLogged() {
        LoggerFactory.getLogger(ModelInferCallTest.class).error("seen", new IllegalStateException("seen"));
        assertThat(RecordedCauses.causes())
                .isNotEmpty()
                .allSatisfy(cause -> assertThat(FatalErrorHandler.find(cause)).isNull());
    }

    /** A message for whose bytes there is no memory. */
    private static final class NoMemory extends InputStream {
        @Override
        public int read() {
            throw new OutOfMemoryError("Java heap space");
        }

        @Override
        public int read(byte[] target, int offset, int length) {
            throw new OutOfMemoryError("Java heap space");
        }
    }

    @Test
    void answersIfThereIsNoMemoryForTheRequest() {
        ModelInferCall call = call();
        var marshaller = InferMarshaller.requests(memory, new TransportMemory(memory, Long.MAX_VALUE));

        call.onMessage(marshaller.parse(new NoMemory()));
        call.onHalfClose();

        assertThat(stream.status).isNotNull();
        assertThat(stream.status.getCode()).isEqualTo(Status.Code.UNAVAILABLE);
        assertThat(stream.status.getDescription()).contains("no memory to read it");
        assertNothingFatalLogged();
    }

    @Test
    void answersIfAWorkerHasNoMemoryForTheRequest() throws IOException {
        ModelInferCall call = call();
        LargeMessage message = LargeMessage.take(new DetachableBytes(new byte[1]), 0, null);
        assertThat(message).isNotNull();

        call.onMessage(new Parsed.Later<>(message, _ -> {
            throw new OutOfMemoryError("Java heap space");
        }));
        call.onHalfClose();

        assertThat(stream.status).isNotNull();
        assertThat(stream.status.getCode()).isEqualTo(Status.Code.UNAVAILABLE);
        assertNothingFatalLogged();
    }

    /** Bytes as the transport has them. */
    private static final class DetachableBytes extends ByteArrayInputStream implements Detachable, HasByteBuffer {
        DetachableBytes(byte[] bytes) {
            super(bytes);
        }

        @Override
        public InputStream detach() {
            return this;
        }

        @Override
        public boolean byteBufferSupported() {
            return false;
        }

        @Override
        public @Nullable ByteBuffer getByteBuffer() {
            return null;
        }
    }
}
