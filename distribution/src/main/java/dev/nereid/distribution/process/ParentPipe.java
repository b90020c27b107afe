package dev.nereid.distribution.process;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * Lines that a parent process writes to the standard input of this process. The end of the parent ends the input, and
 * with it this process. Safe for use by any thread.
 */
public final class ParentPipe {
    private final BlockingQueue<String> lines = new LinkedBlockingQueue<>();

    private ParentPipe() {}

    /** Starts to read on a thread that lives as long as the process. {@code onEnd} ends that when the input ends. */
    public static ParentPipe start(InputStream in, Runnable onEnd) {
        ParentPipe pipe = new ParentPipe();
        Thread.ofPlatform().name("parent").daemon(true).start(() -> {
            try (BufferedReader reader = new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8))) {
                reader.lines().forEach(pipe.lines::add);
            } catch (IOException | UncheckedIOException e) {
                // Closed: the same as its end.
            } finally {
                onEnd.run();
            }
        });
        return pipe;
    }

    /** Waits for the next line of the parent. */
    public String readLine() throws InterruptedException {
        return lines.take();
    }
}
