package dev.nereid.gated;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.Batch;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.MemoryUsage;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ResponseReport;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Tensor;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.StandardWatchEventKinds;
import java.nio.file.WatchService;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Provides the backend {@code gated}, whose loads and executions wait for the test. {@code OUTPUT0} is {@code INPUT0},
 * but loading waits while there is a file {@code load.gate} in the model's directory, and executing while there is a
 * file {@code execute.gate}; a file {@code ….gate.waiting} beside it reports a waiting thread, of which there may be
 * one. Executions fail while there is a file {@code execute.fails}. The setting {@code order} names a file to which
 * each execution adds the name of its model. A decoupled model sends as many responses as its input requests and
 * reports them. Immutable.
 */
public final class GatedBackendProvider implements BackendProvider {
    private static final long TIMEOUT_SECONDS = 300;
    private static final long LOOK_MILLIS = 20;

    @Override
    public String name() {
        return "gated";
    }

    @Override
    public Backend create(BackendContext context) {
        Optional<Path> order = context.settings().text("order").map(Path::of);
        return model -> load(model, order.orElse(null));
    }

    private static Model load(ModelContext context, @Nullable Path order) {
        Path directory = context.modelDirectory();
        await(directory.resolve("load.gate"));
        boolean decoupled = context.settings().decoupled();
        String name = context.settings().name();
        ModelInstance instance = batch -> {
            execute(batch, directory.resolve("execute.gate"), decoupled);
            if (order != null) {
                add(order, name);
            }
        };
        return new Gated(instance);
    }

    private static void add(Path order, String name) {
        try {
            Files.writeString(order, name + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException e) {
            throw new BackendException(ErrorCode.INTERNAL, order + " not written", e);
        }
    }

    /** A model of one instance, which declares {@value #BYTES} bytes of memory. */
    private record Gated(ModelInstance instance) implements Model {
        private static final long BYTES = 1_234;

        @Override
        public ModelInstance newInstance(InstanceContext context) {
            return instance;
        }

        @Override
        public List<MemoryUsage> memoryUsage() {
            return List.of(new MemoryUsage(new MemoryPlace(MemoryPlace.Kind.HOST, 0), BYTES));
        }
    }

    private static void execute(Batch batch, Path gate, boolean decoupled) {
        await(gate);
        if (Files.exists(gate.resolveSibling("execute.fails"))) {
            throw new BackendException(ErrorCode.INTERNAL, "execution fails as configured");
        }
        for (InferenceRequest request : batch.requests()) {
            if (decoupled) {
                respond(request);
                continue;
            }
            request.response().put("OUTPUT0", request.input("INPUT0").orElseThrow(), () -> {});
        }
    }

    /**
     * Sends as many responses as the first number of the input, and reports each response: it took 10 ns for the first,
     * 20 for the second, and so on, and 1 ns for its outputs. Then ends the request and reports that, with 5 ns; or
     * fails it with 7 ns if the number is below zero. A second number is the place, from 1, of a response that fails.
     */
    private static void respond(InferenceRequest request) {
        ResponseSender sender = request.sender();
        Tensor in = request.input("INPUT0").orElseThrow();
        float times = in.data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0);
        if (times < 0) {
            sender.report(ResponseReport.failed(0, 7, ErrorCode.INTERNAL));
            sender.fail(new BackendException(ErrorCode.INTERNAL, "execution fails as configured"));
            return;
        }
        float failing = in.shape().elementCount() > 1 ? in.data().getAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, 1) : 0;
        for (int i = 1; i <= times; i++) {
            if (i == failing) {
                sender.sendError(new BackendException(ErrorCode.UNAVAILABLE, "response " + i + " failed"));
                continue;
            }
            InferenceResponse response = sender.newResponse();
            response.put("OUTPUT0", in, () -> {});
            sender.report(ResponseReport.of(0, 10L * i, 10L * i + 1));
            sender.send(response);
        }
        sender.report(ResponseReport.empty(0, 5));
        sender.complete();
    }

    /** Waits until a file is deleted, if it exists, and reports the wait by another file. */
    private static void await(Path gate) {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(TIMEOUT_SECONDS);
        if (!Files.exists(gate)) {
            return;
        }
        try (WatchService watch = gate.getFileSystem().newWatchService()) {
            gate.getParent().register(watch, StandardWatchEventKinds.ENTRY_DELETE);
            Files.createFile(gate.resolveSibling(gate.getFileName() + ".waiting"));
            while (Files.exists(gate)) {
                if (System.nanoTime() - end > 0) {
                    throw new BackendException(ErrorCode.UNAVAILABLE, gate + " stayed closed");
                }
                watch.poll(LOOK_MILLIS, TimeUnit.MILLISECONDS);
            }
        } catch (IOException | InterruptedException e) {
            throw new BackendException(ErrorCode.UNAVAILABLE, "interrupted at " + gate, e);
        }
    }
}
