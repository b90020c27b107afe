package dev.nereid.backend.tensorflow;

import dev.nereid.spi.ModelContext;
import dev.nereid.spi.Parameters;
import java.io.IOException;
import java.nio.charset.MalformedInputException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Reads the operations that initialize a graph: {@code {"init_ops": ["init"]}}. Stateless.
 *
 * <p>The file has this one form, so a parser of all of JSON would accept no more. Names of operations have no characters
 * that JSON escapes.
 */
final class InitOpsFile {
    private static final String PARAMETER = "TF_INIT_OPS_FILE";
    private static final String NAME = "\"([A-Za-z0-9.][A-Za-z0-9_.\\\\/>-]*)\"";
    private static final Pattern ELEMENT = Pattern.compile(NAME);
    private static final Pattern FORM = Pattern.compile(
            "\\s*\\{\\s*\"init_ops\"\\s*:\\s*\\[\\s*((" + NAME + "\\s*(,\\s*" + NAME + "\\s*)*)?)]\\s*}\\s*");

    private InitOpsFile() {}

    /** Returns the names of the operations in the file that a parameter names. */
    static List<String> read(ModelContext context) {
        Path file = context.file(PARAMETER).orElseThrow(context.parameters().missing(PARAMETER));
        try {
            return parse(Files.readString(file), context.parameters());
        } catch (MalformedInputException e) {
            throw context.parameters().invalid(PARAMETER, "a file with text in UTF-8");
        } catch (IOException e) {
            throw context.parameters().invalid(PARAMETER, "a file that can be read");
        }
    }

    private static List<String> parse(String text, Parameters parameters) {
        Matcher form = FORM.matcher(text);
        if (!form.matches()) {
            throw parameters.invalid(PARAMETER, "a file with {\"init_ops\": [\"name\", …]} alone");
        }
        List<String> names = new ArrayList<>();
        Matcher element = ELEMENT.matcher(form.group(1));
        while (element.find()) {
            names.add(element.group(1).replace("\\/", "/"));
        }
        return names;
    }
}
