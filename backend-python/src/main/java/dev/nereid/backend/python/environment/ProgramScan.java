package dev.nereid.backend.python.environment;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.TensorSpec;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Checks the text of a model's file without Python: finds missing or misspelt names. Static functions only.
 *
 * <p>It finds probable mistakes: only Python itself knows what a program does. Code that it cannot read is not
 * reported.
 */
public final class ProgramScan {
    private static final int MAX_BYTES = 1 << 20;
    private static final int MAX_WARNINGS = 20;
    private static final int MAX_DISTANCE = 2;
    private static final String CLASS = "TritonPythonModel";
    private static final String EXECUTE = "execute";
    private static final String COMPLETE = "auto_complete_config";
    private static final List<String> FUNCTIONS = List.of("initialize", EXECUTE, "finalize", COMPLETE, "is_ready");

    /** Other names that people give the functions, which are not near by letters. */
    private static final Map<String, String> OTHER_NAMES = Map.of(
            "auto_complete_configuration", COMPLETE,
            "autocomplete", COMPLETE,
            "auto_complete", COMPLETE,
            "init", "initialize",
            "predict", EXECUTE,
            "infer", EXECUTE,
            "ready", "is_ready");

    private static final Pattern CLASSES = Pattern.compile("(?m)^class[ \t]+(\\w+)[ \t]*(\\([^)]{0,1000}\\))?[ \t]*:");
    private static final Pattern METHODS = Pattern.compile("(?m)^([ \t]+)(?:async[ \t]+)?def[ \t]+(\\w+)");
    private static final Pattern STAR_IMPORT = Pattern.compile("(?m)^[ \t]*from[ \t]+[\\w.]+[ \t]+import[ \t]+\\*");
    private static final Pattern NAMES =
            Pattern.compile("\\b(get_input_tensor_by_name|get_input_config_by_name|get_output_config_by_name)"
                    + "\\(\\s*[\\w.\\[\\]]+\\s*,\\s*(?:name\\s*=\\s*)?([\"'])([^\"'\\\\\n]+)\\2\\s*,?\\s*\\)");

    private ProgramScan() {}

    /** Checks the file of a model as configured so far; returns probable mistakes, each in one line, commonly none. */
    public static List<String> at(ModelContext model, ModelFile file) {
        Optional<String> program = read(file.file());
        if (program.isEmpty()) {
            return List.of();
        }
        Path root = model.modelDirectory().toAbsolutePath();
        Path label = file.file().startsWith(root)
                ? root.relativize(file.file())
                : file.file().getFileName();
        return of(label.toString(), program.get(), model.settings());
    }

    private static Optional<String> read(Path file) {
        try (InputStream stream = Files.newInputStream(file)) {
            byte[] bytes = stream.readNBytes(MAX_BYTES + 1);
            return bytes.length > MAX_BYTES ? Optional.empty() : Optional.of(new String(bytes, UTF_8));
        } catch (IOException e) {
            return Optional.empty(); // Python will say so
        }
    }

    /** Returns the warnings about a program. A label names it there. */
    static List<String> of(String label, String program, ModelSettings settings) {
        ProgramText text = ProgramText.of(program.replace("\r\n", "\n"));
        List<String> warnings = new ArrayList<>();
        Map<String, Integer> methods = new LinkedHashMap<>();
        Matcher classes = CLASSES.matcher(text.code());
        boolean isFound = false;
        while (!isFound && classes.find()) {
            isFound = classes.group(1).equals(CLASS);
        }
        if (isFound) {
            methods(text, classes.start(), methods);
            boolean inherits = Optional.ofNullable(classes.group(2))
                    .map(bases -> bases.replaceAll("[()\\s]", ""))
                    .filter(bases -> !bases.isEmpty() && !bases.equals("object"))
                    .isPresent();
            functions(label, text, methods, inherits, line(text, classes.start()), warnings);
        } else if (!text.code().contains(CLASS)
                && !STAR_IMPORT.matcher(text.code()).find()) {
            warnings.add(label + ": no class " + CLASS + otherClass(text));
        }
        if (!methods.containsKey(COMPLETE)) {
            tensors(label, text, settings, warnings);
        }
        return List.copyOf(warnings);
    }

    private static String line(ProgramText text, int position) {
        return Integer.toString(text.line(position));
    }

    private static String otherClass(ProgramText text) {
        Matcher classes = CLASSES.matcher(text.code());
        while (classes.find()) {
            if (isNear(classes.group(1).toLowerCase(Locale.ROOT), CLASS.toLowerCase(Locale.ROOT))) {
                return ". Did you mean it by class " + classes.group(1) + " in line " + line(text, classes.start())
                        + "?";
            }
        }
        return " (expected: the class of the model)";
    }

    /** Collects the functions of a class with their positions: the ones with the indentation of the first. */
    private static void methods(ProgramText text, int begin, Map<String, Integer> methods) {
        Matcher found = METHODS.matcher(text.code()).region(begin, text.endOfBlock(begin));
        String indent = null;
        while (found.find()) {
            indent = indent == null ? found.group(1) : indent;
            if (indent.equals(found.group(1))) {
                methods.putIfAbsent(found.group(2), found.start(2));
            }
        }
    }

    private static void functions(
            String label,
            ProgramText text,
            Map<String, Integer> methods,
            boolean inherits,
            String line,
            List<String> warnings) {
        Set<String> meant = new LinkedHashSet<>();
        methods.forEach((name, position) -> function(name)
                .filter(wanted -> !methods.containsKey(wanted) && meant.add(wanted))
                .ifPresent(wanted -> warnings.add(label + ":" + text.line(position) + ": the server does not call "
                        + name + " (expected: " + wanted + ")")));
        boolean isAssigned = Pattern.compile("(?m)\\b" + EXECUTE + "\\s*=")
                .matcher(text.code())
                .find();
        if (!methods.containsKey(EXECUTE) && !meant.contains(EXECUTE) && !inherits && !isAssigned) {
            warnings.add(label + ":" + line + ": class " + CLASS + " has no function " + EXECUTE
                    + ", without which each request fails");
        }
    }

    /** Returns the function of the contract that a name probably means, if it is none itself. */
    private static Optional<String> function(String name) {
        String lower = name.toLowerCase(Locale.ROOT);
        if (FUNCTIONS.contains(name) || name.startsWith("_")) {
            return Optional.empty();
        }
        return Optional.ofNullable(OTHER_NAMES.get(lower))
                .or(() -> FUNCTIONS.stream()
                        .filter(wanted -> isNear(lower.replace("_", ""), wanted.replace("_", "")))
                        .findFirst());
    }

    private static void tensors(String label, ProgramText text, ModelSettings settings, List<String> warnings) {
        Set<String> inputs = new LinkedHashSet<>();
        settings.inputs().forEach(input -> inputs.add(input.name()));
        Set<String> outputs = new LinkedHashSet<>(
                settings.outputs().stream().map(TensorSpec::name).toList());
        Set<String> received = new LinkedHashSet<>(inputs);
        settings.sequenceBatching().ifPresent(batching -> {
            batching.controls().forEach(control -> received.add(control.name()));
            batching.states().forEach(state -> received.add(state.inputName()));
        });
        Set<String> reported = new LinkedHashSet<>();
        Matcher names = NAMES.matcher(text.code());
        while (warnings.size() < MAX_WARNINGS && names.find()) {
            String function = names.group(1);
            String role = function.contains("input") ? "input" : "output";
            Set<String> known =
                    function.startsWith("get_input_tensor") ? received : role.equals("input") ? inputs : outputs;
            String name = names.group(3);
            Set<String> configured = role.equals("input") ? inputs : outputs;
            if (!configured.isEmpty() && !known.contains(name) && reported.add(role + " " + name)) {
                warnings.add(label + ":" + text.line(names.start()) + ": the configuration has no " + role + " '" + name
                        + "', of which " + function + " returns None (expected: "
                        + String.join(", ", known.stream().sorted().toList()) + ")");
            }
        }
    }

    /** Returns whether few letters differ, are missing or are added. */
    private static boolean isNear(String first, String second) {
        if (Math.abs(first.length() - second.length()) > MAX_DISTANCE) {
            return false;
        }
        int[] before = new int[second.length() + 1];
        for (int j = 0; j <= second.length(); j++) {
            before[j] = j;
        }
        for (int i = 1; i <= first.length(); i++) {
            int[] row = new int[second.length() + 1];
            row[0] = i;
            for (int j = 1; j <= second.length(); j++) {
                int change = before[j - 1] + (first.charAt(i - 1) == second.charAt(j - 1) ? 0 : 1);
                row[j] = Math.min(change, 1 + Math.min(before[j], row[j - 1]));
            }
            before = row;
        }
        return before[second.length()] <= MAX_DISTANCE;
    }
}
