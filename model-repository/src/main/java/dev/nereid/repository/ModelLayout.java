package dev.nereid.repository;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * Recognizes the commonest mistakes in the layout of a model repository. Static functions only; reads the disk.
 *
 * <p>A hint has the form {@code found mnist.onnx; expected mnist/1/model.onnx}, with paths in the repository.
 */
public final class ModelLayout {
    /** The file or directory of a model, by the end of its name. */
    private static final Map<String, String> EXPECTED = Map.of(
            ".onnx", "model.onnx",
            ".plan", "model.plan",
            ".engine", "model.plan",
            ".graphdef", "model.graphdef",
            ".pb", "model.graphdef",
            ".savedmodel", "model.savedmodel",
            ".pt", "model.pt",
            ".pt2", "model.pt2");

    /** The file that TensorFlow writes into the directory of a saved model. */
    private static final String SAVED_MODEL = "saved_model.pb";

    /** A version with something before it: v1, version-2, 001. */
    private static final Pattern VERSION_LIKE = Pattern.compile("\\D*?0*(\\d{1,18})");

    private static final int MAX_SHOWN = 3;

    private ModelLayout() {}

    /**
     * Describes a mistake in the layout of a model's directory.
     *
     * @param filename the name of the model's file by its configuration; empty if unknown
     * @return a hint; empty if nothing is recognized
     */
    public static Optional<String> hint(ModelDirectory directory, String filename) {
        try {
            Path path = directory.path();
            String name = directory.name();
            if (!Files.isDirectory(path)) {
                return Optional.empty();
            }
            if (!directory.versions().isEmpty()) {
                Path first = directory.versionDirectory(directory.versions().first());
                return inVersion(first, name + "/" + first.getFileName(), filename);
            }
            if (ModelDirectory.isVersion(name)) {
                return entry(path)
                        .map(found -> found(name + "/" + found, "MODEL/" + name + "/" + expected(found, filename))
                                + ": a model repository contains a directory for each model");
            }
            return Optional.of(withoutVersion(path, name, filename));
        } catch (IOException e) {
            return Optional.empty(); // the load reports that the directory cannot be read
        }
    }

    /** Returns a hint about a model's file that lies beside the directories of models; empty for other files. */
    static Optional<String> loose(Path file) {
        String name = String.valueOf(file.getFileName());
        if (name.equals("config.pbtxt")) {
            return Optional.of(found(name, "MODEL/" + name));
        }
        return isModel(name)
                ? Optional.of(found(name, name.substring(0, name.lastIndexOf('.')) + "/1/" + expected(name, "")))
                : Optional.empty();
    }

    private static Optional<String> inVersion(Path version, String shown, String filename) throws IOException {
        List<String> names = names(version);
        if (names.isEmpty()) {
            return Optional.of(found(shown + ", which is empty", shown + "/" + expected("", filename)));
        }
        if (names.contains(filename)) {
            return Optional.empty();
        }
        Optional<String> exchanged = exchanged(version, shown, names);
        return exchanged.isPresent()
                ? exchanged
                : entry(version)
                        .filter(found -> !found.equals(expected(found, filename)))
                        .map(found -> found(shown + "/" + found, shown + "/" + expected(found, filename)));
    }

    /** A model of TensorFlow that is a file in place of a directory, or the other way round. */
    private static Optional<String> exchanged(Path version, String shown, List<String> names) {
        for (String name : names) {
            boolean isDirectory = Files.isDirectory(version.resolve(name));
            if (name.endsWith(".savedmodel") && !isDirectory) {
                return Optional.of(
                        found(shown + "/" + name + ", a file", "a directory of that name with " + SAVED_MODEL));
            }
            if (name.endsWith(".graphdef") && isDirectory) {
                return Optional.of(found(shown + "/" + name + ", a directory", "a file of that name with a GraphDef"));
            }
        }
        return Optional.empty();
    }

    private static String withoutVersion(Path path, String name, String filename) throws IOException {
        Optional<String> file = entry(path);
        if (file.isPresent()) {
            return found(name + "/" + file.get(), name + "/1/" + expected(file.get(), filename));
        }
        List<String> names = names(path);
        for (String directory : names) {
            Matcher version = VERSION_LIKE.matcher(directory);
            if (version.matches() && Files.isDirectory(path.resolve(directory))) {
                return found(name + "/" + directory, name + "/" + version.group(1));
            }
        }
        String shown = names.isEmpty()
                ? name + ", which is empty"
                : String.join(
                                ", ",
                                names.stream()
                                        .limit(MAX_SHOWN)
                                        .map(entry -> name + "/" + entry)
                                        .toList())
                        + (names.size() > MAX_SHOWN ? ", …" : "");
        return found(shown, name + "/1/" + expected("", filename));
    }

    /** Returns the first entry of a directory that is a model's file. */
    private static Optional<String> entry(Path directory) throws IOException {
        return names(directory).stream().filter(ModelLayout::isModel).findFirst();
    }

    private static List<String> names(Path directory) throws IOException {
        try (Stream<Path> entries = Files.list(directory)) {
            return entries.map(entry -> String.valueOf(entry.getFileName()))
                    .filter(name -> !name.startsWith("."))
                    .sorted()
                    .toList();
        }
    }

    private static boolean isModel(String name) {
        return name.equals(SAVED_MODEL) || EXPECTED.keySet().stream().anyMatch(name::endsWith);
    }

    private static String expected(String found, String filename) {
        if (!filename.isEmpty()) {
            return filename;
        }
        if (found.equals(SAVED_MODEL)) {
            return "model.savedmodel/" + SAVED_MODEL;
        }
        return EXPECTED.entrySet().stream()
                .filter(entry -> found.endsWith(entry.getKey()))
                .map(Map.Entry::getValue)
                .findFirst()
                .orElse("model.onnx or the file of another backend");
    }

    private static String found(String found, String expected) {
        return "found " + found + "; expected " + expected;
    }
}
