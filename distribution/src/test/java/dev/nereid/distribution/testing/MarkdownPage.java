package dev.nereid.distribution.testing;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A page of the documentation, or a part of one: the files and commands in its fenced blocks. For other modules too.
 *
 * @param text the Markdown
 */
public record MarkdownPage(String text) {
    /** A fenced block, with the name of the file that it is to be saved as on the line before, if any. */
    private static final Pattern BLOCK =
            Pattern.compile("(?:^`([^`\n]+)`:\n\n)?^```(\\w*)\n(.*?)^```$", Pattern.MULTILINE | Pattern.DOTALL);

    /** Reads a page of the checkout. */
    public static MarkdownPage of(String document) throws IOException {
        return new MarkdownPage(Files.readString(InstalledServer.CHECKOUT.resolve(document)));
    }

    /** Returns the section of a title. */
    public MarkdownPage section(String title) {
        int start = start(title);
        return new MarkdownPage(text.substring(start, end(start)));
    }

    /** Returns everything but the section of a title. */
    public MarkdownPage without(String title) {
        int start = start(title);
        return new MarkdownPage(text.substring(0, start) + text.substring(end(start)));
    }

    private int start(String title) {
        int start = text.indexOf("\n## " + title + "\n");
        if (start < 0) {
            throw new AssertionError("no section '" + title + "'");
        }
        return start + 1;
    }

    private int end(int start) {
        int next = text.indexOf("\n## ", start);
        return next < 0 ? text.length() : next + 1;
    }

    /** Writes the files that are named on the page. */
    public void saveFiles(Path directory) throws IOException {
        for (Matcher block = BLOCK.matcher(text); block.find(); ) {
            if (block.group(1) != null) {
                Path file = directory.resolve(block.group(1));
                Files.createDirectories(file.getParent());
                Files.writeString(file, block.group(3));
            }
        }
    }

    /** Returns the blocks of commands. */
    public List<String> commands() {
        return blocks("sh");
    }

    /** Returns the blocks in a language. */
    public List<String> blocks(String language) {
        List<String> blocks = new ArrayList<>();
        for (Matcher block = BLOCK.matcher(text); block.find(); ) {
            if (block.group(2).equals(language)) {
                blocks.add(block.group(3));
            }
        }
        return blocks;
    }
}
