package dev.nereid.grpc.stream;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.frontend.ForwardedHeaders;
import dev.nereid.grpc.connection.Parsed;
import dev.nereid.grpc.connection.ShutdownInterceptor;
import dev.nereid.grpc.connection.TransportMemory;
import dev.nereid.grpc.service.InferCallDependencies;
import dev.nereid.grpc.testing.RecordedServerCall;
import dev.nereid.grpc.testing.TestMessages;
import dev.nereid.grpc.wire.CallContext;
import dev.nereid.grpc.wire.InferMessageReader;
import dev.nereid.grpc.wire.InferRequestAssembler;
import dev.nereid.grpc.wire.RequestNames;
import dev.nereid.grpc.wire.ResponseCompressor;
import dev.nereid.grpc.wire.SharedTensors;
import dev.nereid.spi.DataType;
import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.FakeModel;
import dev.nereid.testkit.FakeSharedMemory;
import dev.nereid.testkit.LeakCheckingMemory;
import dev.nereid.testkit.ReceivedRequest;
import inference.ModelInferRequest;
import io.grpc.Metadata;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/** Runs a stream call without network against fake models. */
final class StreamHarness {
    final LeakCheckingMemory memory = new LeakCheckingMemory();
    final FakeInferenceServer server = new FakeInferenceServer(memory);
    final Queue<ReceivedRequest> calls = new ConcurrentLinkedQueue<>();
    final RecordedServerCall stream = new RecordedServerCall();

    /** The tasks of an event loop. */
    final Queue<Runnable> tasks = new ConcurrentLinkedQueue<>();

    private final StreamContext context;
    private final ModelStreamInferCall call;

    /** Opens a stream almost without limits. */
    StreamHarness() {
        this(Long.MAX_VALUE);
    }

    /** Opens a stream with a limit of the bytes that wait behind others of their requests. */
    StreamHarness(long bytesAhead) {
        this(bytesAhead, new Metadata());
    }

    /** Opens a stream with headers of the client. */
    StreamHarness(Metadata headers) {
        this(Long.MAX_VALUE, headers);
    }

    private StreamHarness(long bytesAhead, Metadata headers) {
        server.add(FakeModel.identity("plain", DataType.FP32, 0, -1).responding(calls::add));
        server.add(FakeModel.identity("many", DataType.FP32, 0, -1).decoupled().responding(calls::add));
        FakeSharedMemory shared = server.sharedMemory();
        stream.journal = shared::note;
        context = new StreamContext(
                server,
                new InferCallDependencies(
                        new InferRequestAssembler(memory, shared, Integer.MAX_VALUE),
                        Optional.empty(),
                        ResponseCompressor.NONE,
                        new TransportMemory(memory, Long.MAX_VALUE),
                        System::nanoTime),
                new StreamLimits(1000, Long.MAX_VALUE, bytesAhead),
                tasks::add,
                new ShutdownInterceptor(server.refusals()));
        call = (ModelStreamInferCall) new ModelStreamInferMethod(context).startCall(stream, headers);
    }

    /** Sends a request; the server must have requested a message. */
    void send(ModelInferRequest request) {
        assertThat(stream.requested.getAndDecrement()).as("requested messages").isOne();
        call.onMessage(new Parsed.Ok<>(InferMessageReader.read(TestMessages.cut(request.toByteArray(), List.of(9)))));
    }

    /** Sets whether the transport accepts messages. */
    void ready(boolean now) {
        stream.ready = now;
        if (now) {
            call.onReady();
        }
    }

    /** Runs the tasks of the event loop, and those that they add. */
    void run() {
        for (Runnable task = tasks.poll(); task != null; task = tasks.poll()) {
            task.run();
        }
    }

    /** Creates a request that was not sent. */
    StreamedRequest request(boolean isDecoupled) {
        StreamWriter writer = new StreamWriter(
                stream,
                new StreamOutbox(context.limits()),
                context,
                new CallContext(OptionalLong.empty(), ForwardedHeaders.NONE, Optional.empty()),
                false);
        return new StreamedRequest(writer, new RequestNames("m", "", ""), isDecoupled, SharedTensors.NONE);
    }

    void halfClose() {
        call.onHalfClose();
    }

    /** Cancels the call, as a client does whose connection breaks. */
    void cancel() {
        call.onCancel();
    }

    /** Checks that all memory was released. */
    void checkMemory() {
        assertThat(memory.buffersInUse()).isZero();
        memory.close();
    }
}
