package dev.nereid.crashing;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelContext;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Provides the backend {@code crashing}, whose models end the process as their parameters {@code complete} and
 * {@code load} say: {@code segv} reads address 1 in a native function, {@code abort} calls the function of that name,
 * {@code exit} exits with status 7, {@code heap} fills the heap, and {@code hang} waits for ever, with a file
 * {@code waiting} in the model's directory. A load with {@code other} ends the process by a signal if the model of that
 * name is being loaded too. Immutable.
 */
public final class CrashingBackendProvider implements BackendProvider {
    private static final int STATUS = 7;
    private static final int CHUNK = 1 << 20;
    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    /** Long enough for another load to begin, if it begins at the same time. */
    private static final int LOOKS = 400;

    private static final Set<String> LOADING = ConcurrentHashMap.newKeySet();

    @Override
    public String name() {
        return "crashing";
    }

    @Override
    public Backend create(BackendContext context) {
        return new CrashingBackend();
    }

    private static final class CrashingBackend implements Backend {
        @Override
        public Optional<ModelCompletion> complete(ModelContext model) {
            crash(model, "complete");
            return Optional.empty();
        }

        @Override
        public Model load(ModelContext model) {
            LOADING.add(model.settings().name());
            try {
                model.parameters().value("other").ifPresent(other -> crashBeside(other.toString()));
                crash(model, "load");
                return _ -> batch -> {};
            } finally {
                LOADING.remove(model.settings().name());
            }
        }
    }

    private static void crashBeside(String other) {
        for (int i = 0; i < LOOKS; i++) {
            if (LOADING.contains(other)) {
                call("abort", 0);
            }
            LockSupport.parkNanos(LOOK_NANOS);
        }
    }

    private static void crash(ModelContext model, String work) {
        switch (model.parameters().value(work).map(Object::toString).orElse("")) {
            case "segv" -> call("strlen", 1);
            case "abort" -> call("abort", 0);
            case "exit" -> System.exit(STATUS);
            case "heap" -> fill();
            case "hang" -> hang(model.modelDirectory());
            default -> {
                // A healthy model.
            }
        }
    }

    @SuppressWarnings("restricted")
    private static void call(String function, long argument) {
        Linker linker = Linker.nativeLinker();
        MethodHandle handle = linker.downcallHandle(
                linker.defaultLookup().find(function).orElseThrow(),
                FunctionDescriptor.of(ValueLayout.JAVA_LONG, ValueLayout.ADDRESS));
        try {
            long _ = (long) handle.invokeExact(MemorySegment.ofAddress(argument));
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    private static void fill() {
        List<byte[]> all = new ArrayList<>();
        while (all.size() < Integer.MAX_VALUE) {
            all.add(new byte[CHUNK]);
        }
    }

    private static void hang(Path directory) {
        try {
            Files.writeString(
                    directory.resolve("waiting"),
                    Long.toString(ProcessHandle.current().pid()));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        while (true) {
            LockSupport.park();
        }
    }
}
