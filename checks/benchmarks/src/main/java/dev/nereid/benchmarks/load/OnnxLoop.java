package dev.nereid.benchmarks.load;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import dev.nereid.benchmarks.report.Sample;
import dev.nereid.benchmarks.run.Workload;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;

/**
 * Ceiling of ONNX models: {@code OrtSession.run} in a loop on one thread. Owned by, and confined to, the thread that
 * measures.
 */
public final class OnnxLoop implements Workload, AutoCloseable {
    private final String name;
    private final OrtSession session;
    private final OnnxTensor input;
    private final Map<String, OnnxTensor> inputs;
    private final long batch;

    private OnnxLoop(String name, OrtSession session, OnnxTensor input, Map<String, OnnxTensor> inputs, long batch) {
        this.name = name;
        this.session = session;
        this.input = input;
        this.inputs = inputs;
        this.batch = batch;
    }

    /**
     * Loads a model; the caller closes the loop.
     *
     * @param body the input; its first dimension is the batch
     * @param threads the threads that share the work of one operator
     */
    public static OnnxLoop load(Path model, InferBody body, int threads) throws IOException {
        OrtEnvironment environment = OrtEnvironment.getEnvironment();
        try (OrtSession.SessionOptions options = new OrtSession.SessionOptions()) {
            options.setIntraOpNumThreads(threads);
            OrtSession session = environment.createSession(model.toString(), options);
            ByteBuffer content = body.tensor();
            FloatBuffer direct = ByteBuffer.allocateDirect(content.remaining())
                    .order(ByteOrder.nativeOrder())
                    .asFloatBuffer()
                    .put(content.asFloatBuffer())
                    .flip();
            OnnxTensor input = OnnxTensor.createTensor(environment, direct, body.shape());
            long batch = body.shape()[0];
            String name = "OrtSession.run, batch " + batch + ", " + threads + (threads == 1 ? " thread" : " threads");
            return new OnnxLoop(name, session, input, Map.of(body.input(), input), batch);
        } catch (OrtException e) {
            throw new IOException(model + ": " + e.getMessage(), e);
        }
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public Sample load(Duration time) throws IOException {
        return LatencyHistogram.ofCalls(this::run, time, batch);
    }

    private void run() throws IOException {
        try (OrtSession.Result result = session.run(inputs)) {
            if (result.size() == 0) {
                throw new IOException(name + ": no output");
            }
        } catch (OrtException e) {
            throw new IOException(name + ": " + e.getMessage(), e);
        }
    }

    /** Returns the model's only output: FP32 content. */
    public ByteBuffer output() throws IOException {
        try (OrtSession.Result result = session.run(inputs)) {
            FloatBuffer output = ((OnnxTensor) result.get(0)).getFloatBuffer();
            ByteBuffer content =
                    ByteBuffer.allocate(output.remaining() * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
            content.asFloatBuffer().put(output);
            return content;
        } catch (OrtException e) {
            throw new IOException(name + ": " + e.getMessage(), e);
        }
    }

    @Override
    public void close() throws IOException {
        input.close();
        try {
            session.close();
        } catch (OrtException e) {
            throw new IOException(name + ": " + e.getMessage(), e);
        }
    }
}
