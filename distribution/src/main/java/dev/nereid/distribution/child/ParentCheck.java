package dev.nereid.distribution.child;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.nereid.distribution.child.ChildWork.Begun;
import dev.nereid.distribution.process.ConsoleStreams;
import dev.nereid.distribution.process.StartException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.ProcessBuilder.Redirect;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.stream.Collectors;

/**
 * Runs a check in child processes. A model that ends a process is reported as invalid by the next one. Confined to one
 * thread; blocks.
 *
 * <p>A child lives no longer than this process: its standard input ends with it.
 */
public final class ParentCheck {
    /** How many processes may end before the models that are left are not checked any more. */
    private static final int MAX_ENDS = 16;

    /** How long a child may take to close its models when this process is stopped. */
    private static final Duration CLOSE_LIMIT = Duration.ofSeconds(10);

    /** How long output is read after the end of a child. */
    private static final Duration OUTPUT_LIMIT = Duration.ofSeconds(5);

    private static final Path SHELL = Path.of("/bin/sh");
    private static final String WITHOUT_CORES = "ulimit -S -c 0 2>/dev/null; exec \"$@\"";
    private static final String EXPECTED =
            " (expected: files that the library of the backend can read; a server would end too)";

    private final List<String> command;
    private final ConsoleStreams console;
    private final boolean log;
    private final Map<String, String> refused = new TreeMap<>();

    /** Models that were loaded at the same time when a process ended, with the reason to refuse them. */
    private final Map<String, String> together = new TreeMap<>();

    private boolean oneByOne;
    private String rest = "";

    /**
     * Creates a check. The console receives the output of children.
     *
     * @param command the command line of children
     * @param log whether the JVM's texts about fatal errors are printed
     */
    public ParentCheck(List<String> command, ConsoleStreams console, boolean log) {
        this.command = List.copyOf(command);
        this.console = console;
        this.log = log;
    }

    /**
     * Runs the check; prints its report or error, and returns the exit status of the command.
     *
     * @throws StartException if no child can be started, or if children end for another reason than a model
     * @throws InterruptedException if the thread is interrupted; no child is left
     */
    public int run() throws StartException, InterruptedException {
        for (int ends = 0; ; ) {
            ChildWork work = new ChildWork();
            ProcessEnd end = runChild(work);
            if (work.status().isPresent()) {
                return work.status().getAsInt();
            }
            if (work.isWithheld()) { // no model alone ends the process
                refused.putAll(together);
                together.clear();
                continue;
            }
            ends++;
            refuse(work, end);
            if (ends >= MAX_ENDS) {
                rest = "not checked: the process ended " + ends + " times for other models (expected: correct or remove"
                        + " these first)";
            }
        }
    }

    /** Decides how the next process avoids the end of the last one. */
    private void refuse(ChildWork work, ProcessEnd end) throws StartException {
        List<Begun> suspects = work.suspects();
        if (suspects.isEmpty()
                || !rest.isEmpty()
                || refused.containsKey(suspects.getLast().model())) {
            throw new StartException("the process that checks the models ended (" + end.text() + ")"
                    + (suspects.isEmpty() ? " before a backend completed a model" : "")
                    + " (expected: a report; --log may have the reason)");
        }
        together.clear();
        Set<String> models = suspects.stream().map(Begun::model).collect(Collectors.toCollection(TreeSet::new));
        if (models.size() > 1 && !oneByOne) {
            oneByOne = true;
            suspects.forEach(begun -> together.put(
                    begun.model(),
                    "the process ended (" + end.text() + ") while " + begun.text() + " at the same time as others of "
                            + models + ", and not when they were loaded one after the other" + EXPECTED));
            return;
        }
        Begun begun = suspects.getLast();
        refused.put(
                begun.model(),
                "the process ended (" + end.text() + (work.isInProgress() ? ") while " : ") after ") + begun.text()
                        + EXPECTED);
    }

    private ProcessEnd runChild(ChildWork work) throws StartException, InterruptedException {
        CheckOrder order = new CheckOrder("\u001enereid-" + UUID.randomUUID() + " ", oneByOne, refused, rest);
        Process child = start();
        try (OutputStream in = child.getOutputStream()) {
            send(in, order.line());
            ChildOutput output = new ChildOutput(console.out(), order.mark(), message -> {
                work.accept(message);
                if (message.containsKey(CheckOrder.CHECKED)) {
                    boolean prints = together.isEmpty();
                    if (!prints) {
                        work.withhold();
                    }
                    send(in, prints ? CheckOrder.PRINT : CheckOrder.SAY_NOTHING);
                }
            });
            Thread reading =
                    Thread.ofPlatform().name("check-output").daemon(true).start(() -> read(child, output));
            int status = child.waitFor();
            reading.join(OUTPUT_LIMIT); // a process that the child has started may keep the pipe open
            if (log && !output.fatalError().isEmpty()) {
                console.err().print(output.fatalError());
                console.err().flush();
            }
            return new ProcessEnd(status, output.fatalError());
        } catch (IOException e) {
            throw new StartException("child process: " + e, e);
        } finally {
            stop(child);
        }
    }

    private Process start() throws StartException {
        List<String> line = new ArrayList<>();
        if (Files.isExecutable(SHELL)) {
            line.addAll(List.of(SHELL.toString(), "-c", WITHOUT_CORES, "sh"));
        }
        line.addAll(command);
        try {
            return new ProcessBuilder(line).redirectError(Redirect.INHERIT).start();
        } catch (IOException e) {
            throw new StartException("child process: cannot be started: " + e.getMessage(), e);
        }
    }

    private static void send(OutputStream in, String line) {
        try {
            in.write((line + "\n").getBytes(UTF_8));
            in.flush();
        } catch (IOException e) {
            // The child has ended: its exit status says more.
        }
    }

    private static void read(Process child, ChildOutput output) {
        try (InputStream stream = child.getInputStream()) {
            output.read(stream);
        } catch (IOException e) {
            // Closed after the end of the child.
        }
    }

    /** Ends a child that goes on, since this thread was interrupted. The end of its input lets it close its models. */
    private static void stop(Process child) {
        if (!child.isAlive()) {
            return;
        }
        try {
            child.getOutputStream().close();
            if (child.waitFor(CLOSE_LIMIT)) {
                return;
            }
        } catch (IOException e) {
            // It ends by force.
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        child.destroyForcibly();
    }
}
