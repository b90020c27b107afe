package dev.nereid.backend.python.environment;

import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelContext;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.LongSupplier;

/**
 * Finds the Python that runs a model. Safe for use by any thread; one for each backend, which closes it last.
 *
 * <p>It is that of {@code EXECUTION_ENV_PATH}, a directory or an archive; else the setting {@code executable}; else
 * {@code python3} on the path of the server. Any version will do: the process itself says which it is, and whether it
 * has NumPy.
 */
public final class Environments implements AutoCloseable {
    private static final String MODEL_DIRECTORY = "$$TRITON_MODEL_DIRECTORY";
    private static final String STUB = "triton_python_backend_stub";
    private static final String PYTHON = "python3";
    private static final String PATH = "PATH";
    private static final String LIBRARY_PATH = "LD_LIBRARY_PATH";
    private static final String DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin";

    private final BackendContext context;
    private final PythonSettings settings;
    private final EnvironmentCache cache;
    private final Map<String, String> allVariables;
    private final Optional<ElfHeader> machine;

    /** Creates the environments of a backend; its cache directory has unpacked archives. Nothing is searched yet. */
    public Environments(BackendContext context, PythonSettings settings) {
        this(
                context,
                settings,
                System::nanoTime,
                settings.passedVariables().isEmpty() ? Map.of() : new ProcessBuilder().environment(),
                ElfHeader.of(ElfHeader.THIS_PROCESS));
    }

    /**
     * Creates the environments with another clock, other variables and another machine.
     *
     * @param allVariables the variables of the server with the ones that it reads as secrets
     * @param machine the header of a program for this machine; empty if that is not known
     */
    Environments(
            BackendContext context,
            PythonSettings settings,
            LongSupplier nanoTime,
            Map<String, String> allVariables,
            Optional<ElfHeader> machine) {
        this.context = context;
        this.settings = settings;
        this.allVariables = Map.copyOf(allVariables);
        this.machine = machine;
        cache = new EnvironmentCache(context.cacheDirectory().toAbsolutePath(), nanoTime);
    }

    /**
     * Finds the Python of a model, and unpacks its environment if that is an archive. Blocks: other loads go on if the
     * caller waits for it by {@link ModelContext#await}.
     *
     * @param model the model, of which the log gets a line about the environment
     * @return the Python, owned by the caller
     * @throws BackendException {@link ErrorCode#UNAVAILABLE} if there is no Python, or none that this machine runs;
     *     {@link ErrorCode#INTERNAL} if the environment does not exist or is damaged, with the texts of the reference
     */
    public Interpreter open(ModelContext model, PythonParameters parameters) {
        if (Files.exists(model.modelDirectory().resolve(STUB))) {
            model.logger()
                    .log(
                            Level.WARNING,
                            "model ''{0}'': {1} in its directory is not used: Python itself runs the model",
                            model.settings().name(),
                            STUB);
        }
        return parameters
                .executionEnvironment()
                .map(path -> ofEnvironment(model, path))
                .orElseGet(() -> new Interpreter(ofBackend(), Optional.empty()));
    }

    /** Ends all uses of environments; unpacked archives stay in the cache, but for the oldest ones. */
    @Override
    public void close() {
        cache.close();
    }

    private Interpreter ofEnvironment(ModelContext model, String configured) {
        String text = configured.startsWith(MODEL_DIRECTORY)
                ? model.modelDirectory().toAbsolutePath() + configured.substring(MODEL_DIRECTORY.length())
                : configured;
        model.logger().log(Level.INFO, () -> "Using Python execution env " + text);
        Path canonical = canonical(text);
        if (Files.isDirectory(canonical)) {
            return new Interpreter(ofDirectory(Path.of(text).toAbsolutePath(), text), Optional.empty());
        }
        if (!Files.isRegularFile(canonical)) {
            throw new BackendException(
                    ErrorCode.INTERNAL,
                    "Python execution env " + text + ": neither a directory nor a file (expected: one of them)");
        }
        EnvironmentCache.Lease lease = cache.acquire(canonical, model.logger());
        try {
            return new Interpreter(ofDirectory(lease.directory(), text), Optional.of(lease));
        } catch (RuntimeException | Error e) {
            lease.close();
            throw e;
        }
    }

    private static Path canonical(String text) {
        try {
            return Path.of(text).toRealPath();
        } catch (IOException | InvalidPathException e) {
            throw new BackendException(
                    ErrorCode.INTERNAL,
                    "Failed to get the canonical path for " + text + "." + linkOf(text) + expected(text),
                    e);
        }
    }

    private static String expected(String text) {
        String name = MODEL_DIRECTORY.substring(1);
        return " EXECUTION_ENV_PATH: no such file (expected: a directory with bin/python3, or an archive"
                + (text.startsWith(name) ? "; " + MODEL_DIRECTORY + " with two $ is the directory of the model)" : ")");
    }

    /** Says where a link leads that leads to nothing. */
    private static String linkOf(String text) {
        try {
            Path path = Path.of(text);
            return Files.isSymbolicLink(path) ? " It is a link to " + Files.readSymbolicLink(path) + "." : "";
        } catch (IOException | InvalidPathException e) {
            return "";
        }
    }

    private ProcessCommand ofDirectory(Path directory, String configured) {
        Path activate = directory.resolve("bin/activate");
        if (!Files.exists(activate)) {
            throw new BackendException(
                    ErrorCode.INTERNAL,
                    "Path " + activate
                            + " does not exist. The Python environment should contain an 'activate' script.");
        }
        Path python = directory.resolve("bin").resolve(PYTHON);
        if (!Files.exists(python, LinkOption.NOFOLLOW_LINKS)) {
            python = directory.resolve("bin/python");
        }
        check(
                python,
                "Python of the environment " + configured,
                "an environment made for this machine, by venv-pack or"
                        + " conda-pack or in this place, which has bin/python3");
        Map<String, String> variables = variables();
        variables.put("VIRTUAL_ENV", directory.toString());
        variables.put("VIRTUAL_ENV_PROMPT", "(" + directory + ")");
        prefix(variables, PATH, directory.resolve("bin"));
        prefix(variables, LIBRARY_PATH, directory.resolve("lib"));
        variables.remove("PYTHONHOME");
        return new ProcessCommand(python, List.of(), variables, "the execution environment " + configured);
    }

    private static void prefix(Map<String, String> variables, String name, Path directory) {
        String before = variables.getOrDefault(name, "");
        variables.put(name, before.isEmpty() ? directory.toString() : directory + ":" + before);
    }

    private ProcessCommand ofBackend() {
        Map<String, String> variables = variables();
        String path = Optional.ofNullable(variables.get(PATH))
                .filter(text -> !text.isEmpty())
                .orElse(DEFAULT_PATH);
        String name = settings.executable().orElse(PYTHON);
        String setting = "--backend-config=" + context.name() + ",executable=" + name;
        String label = settings.executable().isPresent() ? setting : PYTHON;
        Path python;
        if (name.indexOf('/') >= 0) {
            python = path(name, setting);
        } else {
            python = search(name, path)
                    .orElseThrow(() -> new BackendException(
                            ErrorCode.UNAVAILABLE,
                            label + ": not found on the path " + path + " (expected: " + name + " there; " + cure()
                                    + ")"));
        }
        check(python, label, cure());
        String origin = settings.executable().isPresent() ? setting : PYTHON + " of the path (" + python + ")";
        return new ProcessCommand(python, List.of(), variables, origin);
    }

    private static Path path(String name, String setting) {
        try {
            return Path.of(name).toAbsolutePath();
        } catch (InvalidPathException e) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT, setting + ": no path (expected: that of a program)", e);
        }
    }

    private String cure() {
        return "install Python 3.9 or later with NumPy, set --backend-config=" + context.name()
                + ",executable=FILE, or name an environment in the parameter EXECUTION_ENV_PATH of the model";
    }

    private static Optional<Path> search(String name, String path) {
        for (String directory : path.split(":", -1)) {
            Optional<Path> found = program(directory.isEmpty() ? "." : directory, name);
            if (found.isPresent()) {
                return found;
            }
        }
        return Optional.empty();
    }

    private static Optional<Path> program(String directory, String name) {
        try {
            return Optional.of(Path.of(directory, name).toAbsolutePath())
                    .filter(file -> Files.isRegularFile(file) && Files.isExecutable(file));
        } catch (InvalidPathException e) {
            return Optional.empty(); // as for a shell
        }
    }

    /** Refuses a program that cannot run, before the kernel does so with a worse text. */
    private void check(Path file, String label, String cure) {
        if (!Files.exists(file)) {
            String reason = Files.isSymbolicLink(file)
                    ? "a link"
                            + linkOf(file.toString())
                                    .replace(" It is a link", "")
                                    .replaceAll("\\.$", "") + ", which does not exist"
                    : "does not exist";
            throw unavailable(label, file, reason, cure);
        }
        if (Files.isDirectory(file)) {
            throw unavailable(label, file, "a directory", "the program itself, such as " + file.resolve("bin/python3"));
        }
        if (!Files.isExecutable(file)) {
            throw unavailable(
                    label, file, "may not be executed", "permission to execute it, on a file system without noexec");
        }
        Optional<ElfHeader> program = ElfHeader.of(file);
        if (program.isEmpty() || machine.isEmpty()) {
            return; // a script, or not known
        }
        ElfHeader wanted = machine.get();
        if (program.get().machine() != wanted.machine() || program.get().bits() != wanted.bits()) {
            throw unavailable(
                    label, file, "a program for " + program.get().machineName(), "one for " + wanted.machineName());
        }
        program.get().loader().filter(loader -> !Files.exists(Path.of(loader))).ifPresent(loader -> {
            throw unavailable(
                    label,
                    file,
                    "needs " + loader + ", which this system does not have",
                    "a Python built for the C library of this system");
        });
    }

    private static BackendException unavailable(String label, Path file, String reason, String expected) {
        String named = label.contains(file.toString()) ? label : label + " (" + file + ")";
        return new BackendException(ErrorCode.UNAVAILABLE, named + ": " + reason + " (expected: " + expected + ")");
    }

    /** Returns the variables of a process without the variables of its Python environment. */
    private Map<String, String> variables() {
        Map<String, String> variables = new HashMap<>(context.environment());
        if (settings.passedVariables().contains(PythonSettings.ALL)) {
            allVariables.forEach(variables::putIfAbsent);
        }
        for (String name : settings.passedVariables()) {
            String value = allVariables.get(name);
            if (value != null) {
                variables.putIfAbsent(name, value);
            }
        }
        return variables;
    }
}
