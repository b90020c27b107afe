package dev.nereid.backend.onnx;

import dev.nereid.backend.onnx.ort.OrtException;
import dev.nereid.backend.onnx.ort.OrtLibrary;
import dev.nereid.backend.onnx.ort.OrtSession;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import java.nio.file.Path;
import java.util.Map;

/** A loaded model: one session, shared by all instances. Immutable; any control thread may use it. */
final class OnnxModel implements Model {
    private final OrtSession session;
    private final OnnxSignature signature;
    private final Map<String, String> runConfig;
    private final Runnable whenClosed;

    private OnnxModel(OrtSession session, OnnxSignature signature, Map<String, String> runConfig, Runnable whenClosed) {
        this.session = session;
        this.signature = signature;
        this.runConfig = runConfig;
        this.whenClosed = whenClosed;
    }

    /**
     * Loads a model, and refuses it if it does not agree with its configuration.
     *
     * @param whenClosed runs when the loaded model is closed
     */
    static OnnxModel load(OrtLibrary library, ModelContext context, OnnxModelOptions options, Runnable whenClosed)
            throws BackendException {
        Path file = OnnxModelPath.of(context);
        ModelSettings settings = context.settings();
        OrtSession session = null;
        try {
            session = OrtSession.open(library, file, options.session());
            OnnxValidation.check(settings, session);
            OnnxModel model = new OnnxModel(session, new OnnxSignature(settings, session), options.run(), whenClosed);
            context.logger().log(System.Logger.Level.INFO, report(context, options, session));
            return model;
        } catch (OrtException e) {
            throw OnnxErrors.of(e);
        } catch (BackendException | RuntimeException e) {
            if (session != null) {
                session.close();
            }
            throw e;
        }
    }

    private static String report(ModelContext context, OnnxModelOptions options, OrtSession session) {
        return "loaded version " + context.settings().version() + ": " + options.threads() + ", instances "
                + context.instances().size() + ", inputs " + session.inputs().size() + ", outputs "
                + session.outputs().size();
    }

    @Override
    public ModelInstance newInstance(InstanceContext context) throws BackendException {
        try {
            return new OnnxInstance(signature, session.newExecution(runConfig));
        } catch (OrtException e) {
            throw OnnxErrors.of(e);
        }
    }

    @Override
    public void close() {
        session.close();
        whenClosed.run();
    }
}
