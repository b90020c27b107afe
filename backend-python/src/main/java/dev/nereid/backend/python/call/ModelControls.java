package dev.nereid.backend.python.call;

import dev.nereid.backend.python.frame.FrameException;
import dev.nereid.backend.python.frame.FrameReader;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelClient;
import java.nio.ByteBuffer;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** Loads, unloads and readiness that one process requests. Used by the thread that reads the channel; never blocks. */
final class ModelControls {
    /** The most loads and unloads in progress. */
    static final int MAX_OPEN = 64;

    /** The bound on configurations and files of the loads in progress, in bytes. A load alone may have more. */
    static final long MAX_BYTES = 1L << 30;

    private static final int LOAD = 1;
    private static final int UNLOAD = 2;
    private static final int READY = 3;
    private static final String FILE_PREFIX = "file:";

    /** How much of a text of the model is quoted. */
    private static final int MAX_QUOTED = 1024;

    private final ModelClient models;
    private final ResponseFrames frames;
    private final System.Logger log;
    private final AtomicInteger open = new AtomicInteger();
    private final AtomicLong bytes = new AtomicLong();

    ModelControls(ModelClient models, ResponseFrames frames, System.Logger log) {
        this.models = models;
        this.frames = frames;
        this.log = log;
    }

    void onControl(FrameReader frame) {
        int operation = frame.flags();
        switch (operation) {
            case LOAD, UNLOAD -> change(operation, frame);
            case READY -> ready(frame);
            default -> throw new FrameException("control operation: " + operation + " (expected: 1, 2 or 3)");
        }
    }

    private void change(int operation, FrameReader frame) {
        long id = frame.id();
        long size = frame.remaining();
        long before = bytes.get();
        if (open.get() >= MAX_OPEN || (before > 0 && before + size > MAX_BYTES)) {
            frames.replyError(
                    id,
                    open.get() + " loads and unloads with " + before + " bytes are in progress (expected: less than "
                            + MAX_OPEN + ", and at most " + MAX_BYTES + " bytes, before another one)");
            return;
        }
        open.incrementAndGet();
        bytes.addAndGet(size);
        CompletionStage<Void> stage;
        try {
            stage = operation == LOAD ? load(frame) : unload(frame);
        } catch (RuntimeException e) {
            end(size);
            if (e instanceof FrameException) {
                throw e;
            }
            frames.replyError(id, text(e));
            return;
        }
        stage.whenComplete((_, failure) -> {
            end(size);
            if (failure == null) {
                frames.reply(id, 0);
            } else {
                frames.replyError(
                        id,
                        text(
                                failure instanceof CompletionException && failure.getCause() != null
                                        ? failure.getCause()
                                        : failure));
            }
        });
    }

    private void end(long size) {
        open.decrementAndGet();
        bytes.addAndGet(-size);
    }

    private String text(Throwable failure) {
        if (!(failure instanceof BackendException)) {
            log.log(System.Logger.Level.WARNING, "load or unload of a model failed", failure);
        }
        return ResponseFrames.text(failure);
    }

    private CompletionStage<Void> load(FrameReader frame) {
        String name = frame.text("name of the model");
        String config = frame.text("configuration");
        int count = frame.entries("files", 2 * Integer.BYTES);
        Map<String, ByteBuffer> files = new LinkedHashMap<>();
        String wrong = null;
        for (int i = 0; i < count; i++) {
            String path = frame.text("path of a file");
            byte[] content = frame.bytes("content of a file", frame.u32("length of a file"));
            if (path.startsWith(FILE_PREFIX)) {
                files.put(path.substring(FILE_PREFIX.length()), ByteBuffer.wrap(content));
            } else {
                wrong = path;
            }
        }
        if (wrong != null) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT, "unrecognized load parameter '" + quoted(wrong) + "'.");
        }
        return models.load(name, config, files);
    }

    private CompletionStage<Void> unload(FrameReader frame) {
        String name = frame.text("name of the model");
        return models.unload(name, frame.u32("whether dependents are unloaded") != 0);
    }

    private void ready(FrameReader frame) {
        String name = frame.text("name of the model");
        String version = frame.text("version");
        try {
            frames.reply(frame.id(), models.isReady(name, version(version)) ? 1 : 0);
        } catch (BackendException e) {
            if (e.code() == ErrorCode.UNAVAILABLE || e.code() == ErrorCode.NOT_FOUND) { // not loaded, or never was
                frames.reply(frame.id(), 0);
            } else {
                frames.replyError(frame.id(), text(e));
            }
        } catch (RuntimeException e) {
            frames.replyError(frame.id(), text(e));
        }
    }

    /** Reads a version as the reference does, with its texts; the second one has its blank before the comma. */
    private static long version(String text) {
        if (text.isEmpty()) {
            return -1;
        }
        long version;
        try {
            version = Long.parseLong(text);
        } catch (NumberFormatException e) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT,
                    "failed to get model version from specified version string '" + quoted(text)
                            + "' (details: stol), version should be an integral value > 0",
                    e);
        }
        if (version < 0) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT,
                    "invalid model version specified '" + quoted(text) + "' , version should be an integral value > 0");
        }
        return version;
    }

    private static String quoted(String text) {
        return text.length() <= MAX_QUOTED ? text : text.substring(0, MAX_QUOTED) + "...";
    }
}
