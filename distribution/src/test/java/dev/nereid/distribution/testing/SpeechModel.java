package dev.nereid.distribution.testing;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import java.nio.FloatBuffer;
import java.nio.file.Path;
import java.util.Map;

/** The voice-activity detector, run by ONNX Runtime's own Java interface. */
public final class SpeechModel {
    private static final long[] STATE = {2, 1, 128};
    private static final int STATE_SIZE = 256;

    private SpeechModel() {}

    /** Returns the probability of speech in each chunk of a recording. */
    public static float[] probabilities(Path model, Recording recording) throws OrtException {
        OrtEnvironment environment = OrtEnvironment.getEnvironment();
        environment.setTelemetry(false);
        float[] probabilities = new float[recording.chunks()];
        float[] state = new float[STATE_SIZE];
        try (OrtSession.SessionOptions options = new OrtSession.SessionOptions()) {
            options.setIntraOpNumThreads(1);
            try (OrtSession session = environment.createSession(model.toString(), options);
                    OnnxTensor rate = OnnxTensor.createTensor(environment, (long) Recording.SAMPLES_PER_SECOND)) {
                for (int i = 0; i < probabilities.length; i++) {
                    probabilities[i] = run(environment, session, recording.chunk(i), state, rate);
                }
            }
        }
        return probabilities;
    }

    /** Runs the model on a chunk. The state is replaced by the next. */
    private static float run(
            OrtEnvironment environment, OrtSession session, float[] chunk, float[] state, OnnxTensor rate)
            throws OrtException {
        try (OnnxTensor input =
                        OnnxTensor.createTensor(environment, FloatBuffer.wrap(chunk), new long[] {1, chunk.length});
                OnnxTensor before = OnnxTensor.createTensor(environment, FloatBuffer.wrap(state), STATE);
                OrtSession.Result result = session.run(Map.of("input", input, "state", before, "sr", rate))) {
            ((OnnxTensor) result.get("stateN").orElseThrow()).getFloatBuffer().get(state);
            return ((OnnxTensor) result.get("output").orElseThrow())
                    .getFloatBuffer()
                    .get();
        }
    }
}
