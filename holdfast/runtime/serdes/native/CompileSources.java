import java.io.File;
import java.nio.charset.StandardCharsets;
import org.codehaus.janino.Compiler;

/** Compiles Java sources with the compiler that ships with Spark: a folder for the classes, then the sources. */
public final class CompileSources {
    public static void main(String[] arguments) throws Exception {
        Compiler compiler = new Compiler();
        compiler.setClassPath(files(System.getProperty("java.class.path").split(File.pathSeparator), 0));
        compiler.setEncoding(StandardCharsets.UTF_8);
        compiler.setDebugSource(true);
        compiler.setDebugLines(true);
        compiler.setDestinationDirectory(new File(arguments[0]), false);
        compiler.compile(files(arguments, 1));
    }

    private static File[] files(String[] paths, int first) {
        File[] found = new File[paths.length - first];
        for (int i = 0; i < found.length; i++) {
            found[i] = new File(paths[first + i]);
        }
        return found;
    }
}
