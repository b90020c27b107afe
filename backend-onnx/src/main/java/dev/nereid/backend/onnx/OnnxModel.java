package dev.nereid.backend.onnx;

import dev.nereid.backend.onnx.ort.OrtException;
import dev.nereid.backend.onnx.ort.OrtLibrary;
import dev.nereid.backend.onnx.ort.OrtProvider;
import dev.nereid.backend.onnx.ort.OrtProviders;
import dev.nereid.backend.onnx.ort.OrtSession;
import dev.nereid.spi.Device;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.MemoryUsage;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Parameters;
import java.util.List;

/**
 * A loaded model: a session for the CPU and for each GPU, shared by the instances there. Immutable but for the sessions,
 * which are opened with the first instance on their device; any control thread may use it.
 */
final class OnnxModel implements Model {
    private final PerDevice<OrtSession> sessions;
    private final OnnxSignature signature;
    private final OnnxModelOptions options;
    private final long mappedBytes;
    private final Parameters parameters;
    private final OnnxBackendOptions backend;
    private final Runnable whenClosed;

    private OnnxModel(
            PerDevice<OrtSession> sessions,
            OnnxSignature signature,
            OnnxModelOptions options,
            long mappedBytes,
            Parameters parameters,
            OnnxBackendOptions backend,
            Runnable whenClosed) {
        this.sessions = sessions;
        this.signature = signature;
        this.options = options;
        this.mappedBytes = mappedBytes;
        this.parameters = parameters;
        this.backend = backend;
        this.whenClosed = whenClosed;
    }

    /** Loads a model for the devices of its instances, and refuses it if it does not agree with its configuration. */
    static OnnxModel load(
            OrtLibrary library,
            ModelContext context,
            OnnxModelOptions options,
            OnnxBackendOptions backend,
            Runnable whenClosed) {
        OnnxFiles files = OnnxFiles.of(context);
        PerDevice<OrtSession> sessions =
                new PerDevice<>(device -> open(library, context, options, files, device), OrtSession::close);
        List<Device> devices = context.instances();
        try {
            OrtSession first = sessions.get(devices.isEmpty() ? Device.CPU : devices.getFirst());
            OnnxValidation.check(context.settings(), first);
            OnnxSignature signature = new OnnxSignature(context.settings(), first);
            for (Device device : devices) {
                sessions.get(device);
            }
            context.logger().log(System.Logger.Level.INFO, report(context, options, first));
            return new OnnxModel(
                    sessions,
                    signature,
                    options,
                    files.mappedBytes() + options.libraryBytes(),
                    context.parameters(),
                    backend,
                    whenClosed);
        } catch (RuntimeException e) {
            sessions.close();
            throw e;
        }
    }

    private static OrtSession open(
            OrtLibrary library, ModelContext context, OnnxModelOptions options, OnnxFiles files, Device device) {
        ModelSettings settings = context.settings();
        OrtProviders providers = OnnxAccelerators.on(device, context, library.providers());
        try {
            OrtSession session =
                    OrtSession.open(library, files.model(), options.sessionOn(device, context.parameters()), providers);
            for (OrtProvider provider : providers.all()) {
                context.logger().log(System.Logger.Level.DEBUG, OnnxAccelerators.report(provider, device, settings));
            }
            return session;
        } catch (OrtException e) {
            throw OnnxErrors.ofLoad(e, files);
        }
    }

    private static String report(ModelContext context, OnnxModelOptions options, OrtSession session) {
        return "loaded version " + context.settings().version() + ": " + options.threads() + ", instances "
                + context.instances().size() + ", inputs " + session.inputs().size() + ", outputs "
                + session.outputs().size();
    }

    @Override
    public ModelInstance newInstance(InstanceContext context) {
        Device device = context.device();
        OrtSession session = sessions.get(device);
        try {
            return new OnnxInstance(signature, session.newExecution(options.runOn(device)), new OnnxMemory(device));
        } catch (OrtException e) {
            throw OnnxErrors.of(e);
        }
    }

    /** Reports the mapped files alone: ONNX Runtime does not report its allocations. */
    @Override
    public List<MemoryUsage> memoryUsage() {
        return mappedBytes == 0 ? List.of() : List.of(new MemoryUsage(MemoryPlace.HOST, mappedBytes));
    }

    /**
     * Returns whether sessions for other instances would have as many threads, and are open: a session on another
     * device would be opened from files that may have changed since.
     */
    @Override
    public boolean suits(List<Device> instances) {
        return instances.stream().allMatch(sessions::has) && options.suits(parameters, backend, instances);
    }

    @Override
    public void close() {
        sessions.close();
        whenClosed.run();
    }
}
