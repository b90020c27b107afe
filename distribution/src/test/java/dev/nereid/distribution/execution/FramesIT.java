package dev.nereid.distribution.execution;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.HastyServer;
import dev.nereid.distribution.testing.HttpRequests;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedFrame;
import jdk.jfr.consumer.RecordedMethod;
import jdk.jfr.consumer.RecordingStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Counts the methods of this project on the stack of an inference over HTTP: of its execution, which is on the event
 * loop that read the request, and of the write of its response.
 */
@Timeout(120)
class FramesIT {
    private static final String MODEL = "hasty";
    private static final String REQUEST =
            "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[0]}]}";
    /** Called with each part of a response, by the thread that sends it. */
    private static final String WRITE = "io.netty.channel.ChannelOutboundBuffer::addMessage";

    private static final String EXECUTE = "dev.nereid.hasty.HastyBackendProvider$HastyModel::execute";
    private static final int MAX_OF_EXECUTION = 16;
    private static final int MAX_OF_WRITE = 28;

    @TempDir
    private Path directory;

    @Test
    void anInferencePassesThroughFewMethods() throws IOException, InterruptedException {
        BlockingQueue<RecordedEvent> calls = new LinkedBlockingQueue<>();
        try (HastyServer server = new HastyServer(directory, MODEL);
                RecordingStream recording = new RecordingStream()) {
            recording
                    .enable("jdk.MethodTrace")
                    .with("filter", EXECUTE + ";" + WRITE)
                    .withoutThreshold()
                    .withStackTrace();
            recording.onEvent("jdk.MethodTrace", event -> {
                if (!methods(event).isEmpty()) { // not by the test's own client
                    calls.add(event);
                }
            });
            recording.startAsync();
            HastyServer.awaitIdle(MODEL);
            HastyServer.assertDirect(
                    server.http.exchange(HttpRequests.json(MODEL, REQUEST)).text());

            assertStack(calls.poll(60, TimeUnit.SECONDS), EXECUTE, MAX_OF_EXECUTION);
            assertStack(calls.poll(60, TimeUnit.SECONDS), WRITE, MAX_OF_WRITE);
        }
    }

    private static void assertStack(@Nullable RecordedEvent call, String method, int max) {
        assertThat(call).as(method).isNotNull();
        RecordedMethod called = call.getValue("method");
        assertThat(called.getType().getName() + "::" + called.getName()).isEqualTo(method);
        assertThat(call.getStackTrace().isTruncated()).isFalse();
        assertThat(methods(call)).as(method).last().asString().startsWith("dev.nereid.http.");
        assertThat(methods(call)).as(method).hasSizeLessThanOrEqualTo(max);
    }

    /** Returns the methods of the server in a stack, the innermost first; without the classes that the JVM adds to them. */
    private static List<String> methods(RecordedEvent call) {
        return call.getStackTrace().getFrames().stream()
                .map(RecordedFrame::getMethod)
                .map(method -> method.getType().getName() + "." + method.getName())
                .filter(name -> name.startsWith("dev.nereid.")
                        && !name.startsWith("dev.nereid.hasty.")
                        && !name.contains("$$Lambda"))
                .toList();
    }
}
