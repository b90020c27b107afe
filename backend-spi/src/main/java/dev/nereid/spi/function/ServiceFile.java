package dev.nereid.spi.function;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.NavigableSet;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Predicate;

/**
 * The content of a service file: lines by hand, then lines of the annotation processor. Immutable.
 *
 * <p>A mark tells the two apart when the next compilation finds the file: a line by hand stays as it is, a class below the
 * mark stays as long as it has its annotation. So a compilation of some of the classes loses none of the others.
 */
record ServiceFile(List<String> byHand, NavigableSet<String> generated) {
    private static final String MARK =
            "# Classes with @BackendFunction; the annotation processor writes what is below.";

    /** Copies both. */
    ServiceFile {
        byHand = List.copyOf(byHand);
        generated = new TreeSet<>(generated);
    }

    /** Reads a file; an empty text is that of a file that does not exist. */
    static ServiceFile parse(String text) {
        List<String> byHand = new ArrayList<>();
        NavigableSet<String> generated = new TreeSet<>();
        boolean isBelow = false;
        for (String line : text.lines().toList()) {
            if (line.equals(MARK)) {
                isBelow = true;
            } else if (isBelow) {
                generated.add(line.strip());
            } else {
                byHand.add(line);
            }
        }
        generated.remove("");
        return new ServiceFile(byHand, generated);
    }

    /** Returns the file after a compilation, of which functions that were compiled before stay. */
    ServiceFile with(Set<String> compiled, Predicate<String> isFunction) {
        NavigableSet<String> merged = new TreeSet<>(compiled);
        generated.stream().filter(isFunction).forEach(merged::add);
        merged.removeAll(namedByHand());
        return new ServiceFile(byHand, merged);
    }

    private Set<String> namedByHand() {
        Set<String> names = new LinkedHashSet<>();
        for (String line : byHand) {
            int comment = line.indexOf('#');
            names.add((comment < 0 ? line : line.substring(0, comment)).strip());
        }
        return names;
    }

    /** Returns the content of the file. */
    String text() {
        StringBuilder text = new StringBuilder();
        byHand.forEach(line -> text.append(line).append('\n'));
        if (!generated.isEmpty()) {
            text.append(MARK).append('\n');
            generated.forEach(name -> text.append(name).append('\n'));
        }
        return text.toString();
    }
}
