package dev.nereid.gated;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.Batch;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelInstance;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardWatchEventKinds;
import java.nio.file.WatchService;
import java.util.concurrent.TimeUnit;

/**
 * Brings the backend {@code gated}: {@code OUTPUT0} is {@code INPUT0}, but loading waits while there is a file
 * {@code load.gate} in the model's folder, and executing while there is a file {@code execute.gate}; a file
 * {@code ….gate.waiting} beside it tells that somebody waits, of whom there may be one. Executions fail while there is a
 * file {@code execute.fails}. Immutable.
 */
public final class GatedBackendProvider implements BackendProvider {
    private static final long PATIENCE_SECONDS = 300;
    private static final long LOOK_MILLIS = 20;

    @Override
    public String name() {
        return "gated";
    }

    @Override
    public Backend create(BackendContext context) {
        return GatedBackendProvider::load;
    }

    private static Model load(ModelContext context) throws BackendException {
        Path folder = context.modelDirectory();
        await(folder.resolve("load.gate"));
        ModelInstance instance = batch -> execute(batch, folder.resolve("execute.gate"));
        return ignored -> instance;
    }

    private static void execute(Batch batch, Path gate) throws BackendException {
        await(gate);
        if (Files.exists(gate.resolveSibling("execute.fails"))) {
            throw new BackendException(ErrorCode.INTERNAL, "told to fail");
        }
        for (InferenceRequest request : batch.requests()) {
            request.response().put("OUTPUT0", request.input("INPUT0").orElseThrow(), () -> {});
        }
    }

    /** Waits until somebody deletes a file, if it is there, and says so by another file. */
    private static void await(Path gate) throws BackendException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);
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
