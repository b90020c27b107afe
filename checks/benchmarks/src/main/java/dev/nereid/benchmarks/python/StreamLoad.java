package dev.nereid.benchmarks.python;

import dev.nereid.api.InferenceServer;
import dev.nereid.benchmarks.report.Sample;
import dev.nereid.benchmarks.run.Workload;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.TimeUnit;

/**
 * Responses that one process streams, one request after another. The latencies cover whole streams. Confined to the
 * thread that measures.
 */
record StreamLoad(String name, InferenceServer server) implements Workload {
    static final int RESPONSES = 10_000;

    @Override
    public Sample load(Duration time) throws IOException, InterruptedException {
        long start = System.nanoTime();
        long end = start + time.toNanos();
        long received = 0;
        long streams = 0;
        while (System.nanoTime() - end < 0) {
            EmbeddedCall call = EmbeddedCall.make(server, PythonModels.STREAM, RESPONSES);
            if (call.responses() != RESPONSES || call.output()[0] != RESPONSES - 1) {
                throw new IOException(name + ": " + call.responses() + " responses (expected: " + RESPONSES + ")");
            }
            received += call.responses();
            streams++;
        }
        double seconds = (double) (System.nanoTime() - start) / TimeUnit.SECONDS.toNanos(1);
        double micros = seconds / streams * TimeUnit.SECONDS.toMicros(1);
        return new Sample(received / seconds, micros, micros);
    }
}
